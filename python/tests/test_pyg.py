"""The transforms against PyTorch Geometric's contract, and GDC against PyTorch Geometric's own."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from conftest import adjacency, golden
from scipy import sparse
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import GATConv, GCNConv

import qdc
from qdc.pyg import BPDC, GDC, QDC, SDRF, Dataset, MultiScale, MultiScaleGNN

TRANSFORMS = [
    QDC(mu=0.3, sigma=0.1, sparsify=qdc.TopK(8)),
    BPDC(mu=0.3, gamma=0.2),
    GDC(alpha=0.1),
    GDC("heat", time=2.0, sparsify=qdc.TopK(4), symmetrize=False),
    SDRF(iterations=5),
    MultiScale(QDC(mu=-0.2)),
]
REWIRINGS = TRANSFORMS[:-1]


@pytest.fixture
def data(karate: sparse.csr_array) -> Data:
    edge_index = torch.from_numpy(np.array(karate.nonzero()))
    torch.manual_seed(0)
    return Data(
        x=torch.randn(34, 5),
        y=torch.arange(34) % 2,
        edge_index=edge_index,
        edge_attr=torch.ones(edge_index.size(1), 3),
        train_mask=torch.ones(34, dtype=torch.bool),
        name="karate",
    )


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda transform: type(transform).__name__)
def test_transforms_pickle_and_copy(transform: Any, data: Data) -> None:
    expected = transform(data)
    for again in (pickle.loads(pickle.dumps(transform)), copy.deepcopy(transform)):
        assert repr(again) == repr(transform)
        made = again(data)
        assert made.keys() == expected.keys() and torch.equal(made.edge_index, expected.edge_index)


@pytest.mark.parametrize("transform", REWIRINGS, ids=lambda transform: type(transform).__name__)
def test_a_transform_keeps_the_contract(transform: Any, data: Data) -> None:
    before = data.clone()
    after = transform(data)
    # The input stays as it was, and what is not about edges is handed through as it is.
    assert data.keys() == before.keys() and torch.equal(data.edge_index, before.edge_index)
    for key in ("x", "y", "train_mask", "name"):
        assert after[key] is data[key]
    assert "edge_attr" not in after, "it described edges that are gone"
    assert after.edge_index.dtype == torch.int64 and after.edge_weight.dtype == torch.float32
    assert after.edge_weight.shape == (after.num_edges,) and after.num_nodes == 34
    assert after.validate() and after.is_coalesced()
    assert torch.equal(T.Compose([T.NormalizeFeatures(), transform])(data).edge_weight, after.edge_weight)


def test_the_layers_multiply_by_the_kernel(data: Data) -> None:
    for normalize in ("sym", "row", "col"):
        transform = QDC(mu=0.3, sigma=0.1, normalize=normalize)  # type: ignore[arg-type]
        after = transform(data)
        layer = GCNConv(5, 4, normalize=False, bias=False)
        graph = qdc.Graph(data.edge_index)
        matrix = torch.from_numpy(qdc.kernel(graph, mu=0.3, sigma=0.1, normalize=normalize).toarray()).float()
        expected = matrix @ layer.lin(data.x)
        torch.testing.assert_close(layer(after.x, after.edge_index, after.edge_weight), expected)
    attention = GATConv(5, 4, add_self_loops=False)
    assert attention(after.x, after.edge_index).shape == (34, 4)


def test_the_representation_tells_every_parameter() -> None:
    assert repr(QDC(mu=0.25, sparsify=qdc.TopK(4))) == (
        "QDC(mu=0.25, sigma=0.3, pairs='all', sparsify=TopK(k=4), sign='positive', normalize='sym', self_loop=1.0, "
        "solver='auto', tolerance=1e-10, precision='f64', accuracy=None, weight='edge_weight', threads=None)"
    )
    assert repr(QDC(mu=0.25)) != repr(QDC(mu=0.26))


def test_weights_are_read_and_written_under_the_name_given(data: Data) -> None:
    data.edge_attr = None
    data.strength = torch.rand(data.num_edges)
    row, column = data.edge_index
    data.strength = (row + column).float()  # symmetric
    after = QDC(mu=0.3, sigma=0.1, weight="strength")(data)
    weighted = qdc.kernel(qdc.Graph(data.edge_index, weights=data.strength), mu=0.3, sigma=0.1)
    assert after.strength.shape == (after.num_edges,) and after.num_edges == weighted.nnz
    assert "edge_weight" not in after


def test_features_in_double_precision_get_weights_in_double_precision(data: Data) -> None:
    data.x = data.x.double()
    assert QDC()(data).edge_weight.dtype == torch.float64


def test_vertices_without_edges_are_kept() -> None:
    lonely = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert QDC(mu=1.0)(lonely).num_nodes == 4
    assert QDC(mu=1.0)(Data(edge_index=lonely.edge_index, num_nodes=4)).num_nodes == 4


def test_what_cannot_be_rewired_is_refused_with_advice(data: Data) -> None:
    directed = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(qdc.GraphError, match="directed") as refused:
        QDC()(directed)
    assert "ToUndirected" in (refused.value.hint or "")
    assert T.Compose([T.ToUndirected(), QDC()])(directed).num_nodes == 3
    hetero = HeteroData()
    hetero["author"].x = torch.ones(2, 1)
    with pytest.raises(qdc.GraphError, match="one kind") as refused:
        QDC()(hetero)
    assert "to_homogeneous" in (refused.value.hint or "")
    with pytest.raises(qdc.GraphError, match="no edge_index"):
        QDC()(Data(x=torch.ones(2, 1)))
    with pytest.raises(qdc.ParameterError, match="sigma"):
        QDC(sigma=-1.0)
    with pytest.raises(qdc.ParameterError, match="does not take time"):
        GDC("ppr", time=2.0)


def test_bad_weights_of_a_data_object_are_refused_with_advice(data: Data) -> None:
    bad: dict[str, tuple[torch.Tensor, str]] = {
        "negative": (-torch.ones(data.num_edges), "weight -1"),
        "NaN": (torch.full((data.num_edges,), float("nan")), "weight NaN"),
        "half": (torch.ones(data.num_edges, dtype=torch.float16), "float16"),
        "matrix": (torch.ones(data.num_edges, 2), "shape"),
    }
    for weights, message in bad.values():
        data.edge_weight = weights
        with pytest.raises(qdc.GraphError, match=message):
            QDC()(data)


def test_what_is_written_lies_on_the_device_of_what_was_read(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU: the device is asked of ``edge_index`` and handed to the conversion, which obeys."""
    index, weight = qdc.convert.to_edge_index(qdc.kernel(data.edge_index), device="meta")
    assert index.device.type == weight.device.type == "meta"
    asked = []

    def remember(matrix: Any, dtype: Any, device: Any, *, symmetric: bool) -> Any:
        asked.append(device)
        return qdc.convert.to_edge_index(matrix, dtype, device, symmetric=symmetric)

    monkeypatch.setattr("qdc.pyg.transforms.to_edge_index", remember)
    QDC()(data)
    assert asked == [data.edge_index.device]


def _same_on_the_gpu(transform: Any, data: Data) -> Data:
    """What the transform makes of data on a GPU, checked against what it makes on the CPU."""
    on_gpu, on_cpu = transform(data.clone().to("cuda")), transform(data)
    assert on_gpu.keys() == on_cpu.keys()
    for key, value in on_gpu.items():
        if torch.is_tensor(value):
            assert value.is_cuda, key
            assert value.dtype == on_cpu[key].dtype, key
            if value.is_floating_point():  # the GPU adds in another order
                torch.testing.assert_close(value.cpu(), on_cpu[key], atol=2e-6, rtol=1e-5)
            else:
                assert torch.equal(value.cpu(), on_cpu[key]), key
    return on_gpu


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@needs_cuda
@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda transform: type(transform).__name__)
def test_data_on_a_gpu_stays_there(transform: Any, data: Data) -> None:
    data.edge_weight = torch.ones(data.num_edges)
    _same_on_the_gpu(transform, data)


@needs_cuda
@pytest.mark.parametrize("normalize", ["sym", "row", "col", None])
def test_a_kernel_of_data_on_a_gpu_does_not_pass_through_the_host(
    normalize: Any, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    transforms = [
        QDC(mu=0.3, sigma=0.1, normalize=normalize),
        QDC(mu=0.3, sigma=0.1, normalize=normalize, solver="chebyshev", sign="absolute"),
        QDC(mu=0.3, sigma=0.1, normalize=normalize, sign="absolute", sparsify=None, pairs=9),
        GDC("heat", time=2.0, normalize=normalize, solver="chebyshev"),
    ]
    for transform in transforms:
        _same_on_the_gpu(transform, data)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a kernel was made on the host")

    monkeypatch.setattr("qdc.pyg.transforms.kernel", refuse)
    monkeypatch.setattr("qdc.pyg.transforms.to_edge_index", refuse)
    for features in (data.x.double(), data.x, data.x.half()):
        on_gpu = Data(x=features, edge_index=data.edge_index).to("cuda")
        for transform in transforms:
            after = transform(on_gpu)
            assert after.edge_index.is_cuda and after.edge_weight.is_cuda
            assert after.edge_weight.dtype == features.dtype and after.is_coalesced()
            later = [transform(on_gpu).edge_weight for _ in range(20)]  # memory is not used again while it is read
            assert all(torch.equal(after.edge_weight, weights) for weights in later)


@needs_cuda
def test_what_a_gpu_leaves_to_the_cpu_ends_there_too(data: Data) -> None:
    largest = QDC(mu=0.3, sigma=0.1, sparsify=qdc.TopK(3))
    nothing = QDC(mu=0.3, sigma=0.1, sparsify=qdc.Epsilon(9.0))
    for transform in (largest, nothing, GDC(alpha=0.1)):
        after = _same_on_the_gpu(transform, data)
    assert _same_on_the_gpu(nothing, data).num_edges == 0 and after.num_nodes == 34


@pytest.mark.parametrize("name", ["karate", "cornell"])
def test_gdc_equals_pytorch_geometric(name: str) -> None:
    arrays = golden(f"gdc_{name}.npz")
    cases = [case for case in golden("gdc.json")["cases"] if case["graph"] == name]
    matrix = adjacency(arrays)
    graph = Data(
        x=torch.zeros(matrix.shape[0], 1, dtype=torch.float64), edge_index=torch.from_numpy(np.array(matrix.nonzero()))
    )
    assert len(cases) >= 4
    for case in cases:
        options = dict(
            self_loop_weight=1, normalization_in="sym", normalization_out="sym", diffusion_kwargs=case["diffusion"],
            sparsification_kwargs=case["sparsify"], exact=True,
        )  # fmt: skip
        ours = GDC.from_pyg(T.GDC(**options))(graph)
        key = case["key"]
        index, weight = arrays[f"{key}.edge_index"], arrays[f"{key}.weight"]
        if case["sparsify"]["method"] == "threshold":
            assert np.array_equal(ours.edge_index.numpy(), index), key
            np.testing.assert_allclose(ours.edge_attr.numpy(), weight, atol=1e-10)
            continue
        clear = ~arrays[f"{key}.tied_columns"]
        kept = GDC.from_pyg(T.GDC(**{**options, "normalization_out": None}))(graph)
        for column in range(matrix.shape[0]):
            mine, theirs = (ours.edge_index[1] == column).numpy(), index[1] == column
            mine_kept = np.sort(kept.edge_attr.numpy()[kept.edge_index[1].numpy() == column])
            np.testing.assert_allclose(mine_kept, np.sort(arrays[f"{key}.kept"][theirs]), atol=1e-9)
            if clear[column]:
                assert np.array_equal(ours.edge_index[0].numpy()[mine], index[0][theirs]), (key, column)
                np.testing.assert_allclose(ours.edge_attr.numpy()[mine], weight[theirs], atol=1e-10)


@pytest.mark.parametrize("normalization", ["sym", "row", "col", None])
@pytest.mark.parametrize("diffusion", [{"method": "ppr", "alpha": 0.2}, {"method": "coeff", "coeffs": [0.5, 0.3, 0.2]}])
def test_gdc_equals_pytorch_geometric_side_by_side(data: Data, normalization: Any, diffusion: dict[str, Any]) -> None:
    data = Data(x=data.x.double(), edge_index=data.edge_index, edge_attr=torch.ones(data.num_edges).double())
    theirs = T.GDC(1.0, "sym", normalization, diffusion, {"method": "threshold", "eps": 0.011}, exact=True)
    if diffusion["method"] == "coeff":
        torch.set_default_dtype(torch.float64)  # PyG makes the identity in the default type
    try:
        expected = theirs(data)
    finally:
        torch.set_default_dtype(torch.float32)
    ours = GDC.from_pyg(theirs)(data)
    assert torch.equal(ours.edge_index, expected.edge_index)
    torch.testing.assert_close(ours.edge_attr, expected.edge_attr, atol=1e-9, rtol=0)


def test_what_gdc_cannot_take_over_is_refused() -> None:
    for transform in (T.GDC(), T.GDC(normalization_in="row"), T.GDC(exact=False)):
        with pytest.raises(qdc.ParameterError, match="no counterpart"):
            GDC.from_pyg(transform)


def test_multiscale_attaches_a_second_graph_that_batches_and_trains(data: Data) -> None:
    transform = MultiScale(QDC(mu=0.3, sigma=0.1, sparsify=qdc.TopK(8)))
    after = transform(data)
    assert torch.equal(after.edge_index, data.edge_index) and "edge_attr" in after
    assert after.qdc_edge_index.shape[1] == len(after.qdc_edge_weight)
    assert repr(transform).startswith("MultiScale(rewiring=QDC(mu=0.3") and pickle.loads(pickle.dumps(transform))
    batch = Batch.from_data_list([after, after])
    assert batch.qdc_edge_index.max() == 67
    after.edge_attr = None
    for combinator in ("concat", "add"):
        torch.manual_seed(0)
        network = MultiScaleGNN(5, 2, hidden=8, layers=2, qdc_hidden=4, combinator=combinator, dropout=0.0)  # type: ignore[arg-type]
        optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
        losses = []
        for _ in range(60):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(network(after), after.y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.5 * losses[0]
    with pytest.raises(qdc.ParameterError, match="combinator"):
        MultiScaleGNN(5, 2, combinator="max")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_dataset_applies_its_pre_transform_and_never_serves_a_stale_file(data_dir: str, tmp_path: Path) -> None:
    plain = Dataset("texas", data_dir=data_dir)
    assert (plain.num_classes, plain.num_features, len(plain)) == (5, 1703, 1)
    assert plain[0].train_mask.shape == (183, 10) and plain[0].is_undirected()
    narrow = Dataset("texas", root=str(tmp_path), pre_transform=QDC(mu=0.3, sigma=0.1), data_dir=data_dir)
    wide = Dataset("texas", root=str(tmp_path), pre_transform=QDC(mu=0.3, sigma=0.5), data_dir=data_dir)
    assert narrow[0].num_edges != wide[0].num_edges
    again = Dataset("texas", root=str(tmp_path), pre_transform=QDC(mu=0.3, sigma=0.1), data_dir=data_dir)
    assert torch.equal(again[0].edge_weight, narrow[0].edge_weight)
    assert len(list((tmp_path / "processed").glob("texas-*/data.pt"))) == 2
