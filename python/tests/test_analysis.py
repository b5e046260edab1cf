"""Homophily, SDRF and the dynamics against the golden files; conversions."""

from __future__ import annotations

import dataclasses

import networkx
import numpy as np
import pytest
import torch
from conftest import golden
from scipy import sparse

import qdc


@pytest.mark.parametrize("name", ["cornell", "texas", "wisconsin"])
def test_homophily_equals_the_golden_file(name: str, data_dir: str) -> None:
    expected = golden("homophily.json")["datasets"][name]
    dataset = qdc.datasets.load(name, data_dir)
    for kind in ("node", "node_with_neighbours", "edge"):
        assert qdc.homophily(dataset.graph, dataset.labels, kind) == pytest.approx(expected[kind], abs=1e-12)  # type: ignore[arg-type]


def test_labels_may_be_words_or_tensors(karate: sparse.csr_array) -> None:
    numbers = np.arange(34) % 3
    words = np.array(["red", "green", "blue"])[numbers]
    expected = qdc.homophily(karate, numbers)
    assert qdc.homophily(karate, words) == qdc.homophily(karate, torch.from_numpy(numbers)) == expected
    with pytest.raises(qdc.ParameterError, match="expected 34, found 3"):
        qdc.homophily(karate, [0, 1, 2])
    with pytest.raises(qdc.ParameterError, match="kind"):
        qdc.homophily(karate, numbers, "vertex")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cornell", "texas"])
def test_spectral_homophily_equals_the_golden_file(name: str, data_dir: str) -> None:
    arrays = golden("homophily_spectral.npz")
    dataset = qdc.datasets.load(name, data_dir)
    seen = qdc.spectral_homophily(qdc.Spectrum(dataset.graph), dataset.labels)
    np.testing.assert_allclose(seen.eigenvalues, arrays[f"{name}.eigenvalue"], atol=1e-10)
    assert np.array_equal(seen.multiplicities, arrays[f"{name}.multiplicity"])
    assert np.array_equal(seen.homophily, seen.reading())
    # Where an entry lies next to the cutoff it may fall either way.
    tolerance = np.where(arrays[f"{name}.margin"] > 1e-10, 1e-9, 1e-3)
    for sign, entries in (("positive", "signed"), ("absolute", "absolute")):
        for weighted in (False, True):
            for with_neighbours in (False, True):
                key = f"{name}.{entries}.{'weighted' if weighted else 'unweighted'}"
                expected = arrays[key + (".with_neighbours" if with_neighbours else "")]
                made = seen.reading(sign, weighted=weighted, with_neighbours=with_neighbours)  # type: ignore[arg-type]
                assert (np.abs(made - expected) < tolerance).all(), key


def test_spectral_homophily_takes_a_graph_or_its_spectrum(karate: sparse.csr_array) -> None:
    labels = np.arange(34) % 2
    told: list[str] = []
    seen = qdc.spectral_homophily(karate, labels, threads=1, progress=lambda phase, done, total: told.append(phase))
    again = qdc.spectral_homophily(qdc.Spectrum(karate), labels, threads=2)
    assert np.array_equal(seen.homophily, again.homophily) and "homophily by eigenvalue" in told
    assert seen.multiplicities.sum() == 34 and len(seen) == len(seen.eigenvalues)
    assert repr(seen).startswith(f"SpectralHomophily({len(seen)} eigenvalues from -0.")
    with pytest.raises(qdc.ParameterError, match="expected 34, found 3"):
        qdc.spectral_homophily(karate, [0, 1, 2])
    with pytest.raises(qdc.ParameterError, match="sign"):
        seen.reading("odd")  # type: ignore[arg-type]
    with pytest.raises(qdc.MemoryLimitError):
        qdc.spectral_homophily(karate, labels, memory=1000)


def exact_window_homophily(graph: qdc.Graph, labels: np.ndarray, mu: float, sigma: float) -> float:
    """The definition: of the squares of a vertex's entries, the share that leads to its own class."""
    squares = qdc.kernel(graph, mu=mu, sigma=sigma, sparsify=None, sign="absolute", normalize=None).toarray() ** 2
    np.fill_diagonal(squares, 0.0)
    same = labels[:, None] == labels[None, :]
    return float(((squares * same).sum(axis=1) / squares.sum(axis=1)).mean())


def test_the_estimate_of_a_window_agrees_with_its_definition() -> None:
    dataset = qdc.datasets.load("csbm:n=150,homophily=0.2,seed=0")
    windows = [(-0.4, 0.1), (0.0, 0.3), (0.9, 0.2)]
    seen = qdc.window_homophily(dataset.graph, dataset.labels, windows, probes=400, threads=1)
    for at, (mu, sigma) in enumerate(windows):
        exact = exact_window_homophily(dataset.graph, dataset.labels, mu, sigma)
        assert abs(seen.homophily[at] - exact) < 4 * seen.spread[at] + 0.01
    assert np.array_equal(seen.mu, [-0.4, 0.0, 0.9]) and np.array_equal(seen.sigma, [0.1, 0.3, 0.2])
    again = qdc.window_homophily(dataset.graph, dataset.labels, windows, probes=400, threads=2)
    assert np.array_equal(seen.homophily, again.homophily) and np.array_equal(seen.agreement, again.agreement)
    with pytest.raises(qdc.ParameterError, match="sigma"):
        qdc.window_homophily(dataset.graph, dataset.labels, [(0.0, -1.0)])
    with pytest.raises(qdc.ParameterError, match="probes"):
        qdc.window_homophily(dataset.graph, dataset.labels, probes=0)


def test_vertices_without_a_label_are_left_out(karate: sparse.csr_array) -> None:
    labels = np.arange(34) % 2
    labels[5:9] = -1
    known = np.flatnonzero(labels >= 0)
    assert qdc.homophily(karate, labels) == qdc.homophily(karate[known][:, known], labels[known])
    mask = labels >= 0
    plain, masked = (qdc.window_homophily(karate, labels, mask=given, threads=1) for given in (None, mask))
    for ours, theirs in zip(dataclasses.astuple(plain), dataclasses.astuple(masked), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    signs = np.where(np.arange(34) % 2 == 0, -1, 1)  # without a 0, -1 is a class like any other
    assert qdc.homophily(karate, signs) == qdc.homophily(karate, np.arange(34) % 2)


def test_a_suggestion_uses_the_labels_in_the_mask_alone() -> None:
    dataset = qdc.datasets.load("csbm:n=300,homophily=0.1,seed=0")
    mask, labels = dataset.train_masks[0], dataset.labels.copy()
    found = qdc.suggest(dataset.graph, labels, mask=mask)
    assert found["mu"] < 0 < found["sigma"] and found["agreement"] > found["chance"] and found["reason"]
    labels[~mask] = 7
    assert qdc.suggest(dataset.graph, torch.from_numpy(labels), mask=torch.from_numpy(mask)) == found
    with pytest.raises(qdc.ParameterError, match="mask of shape") as refused:
        qdc.suggest(dataset.graph, labels, mask=dataset.train_masks.T)
    assert "one column" in (refused.value.hint or "")
    with pytest.raises(qdc.ParameterError, match="a mask of type int64"):
        qdc.suggest(dataset.graph, labels, mask=mask.astype(np.int64))


@pytest.mark.parametrize("variant", ["formula", "code"])
@pytest.mark.parametrize("name", ["karate", "barbell", "random"])
def test_sdrf_equals_the_golden_file(name: str, variant: str) -> None:
    arrays, index = golden(f"curvature_{name}.npz"), golden("curvature.json")
    steps = arrays[f"{variant}.steps"]
    options = {"iterations": len(steps), "removal_bound": index["removal_bound"], "variant": variant}
    after, report = qdc.sdrf(qdc.Graph(arrays["edges"]), **options, return_report=True)
    assert np.array_equal(np.array(sparse.triu(after).nonzero()).T, arrays[f"{variant}.edges_after"])
    assert report["added"] == int((steps[:, 2] >= 0).sum())


def test_sdrf_has_one_default_everywhere_and_does_not_depend_on_threads(karate: sparse.csr_array) -> None:
    from inspect import signature

    from qdc.pyg import SDRF

    for name in ("iterations", "tau", "removal_bound", "variant", "seed"):
        assert signature(qdc.sdrf).parameters[name].default == signature(SDRF).parameters[name].default, name
    one, two = (qdc.sdrf(karate, iterations=20, tau=5.0, seed=3, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.toarray(), two.toarray())


def test_dynamics_equal_the_golden_file() -> None:
    arrays, index = golden("dynamics.npz"), golden("dynamics.json")
    barbell = networkx.disjoint_union(networkx.complete_graph(10), networkx.path_graph(1))
    barbell = networkx.disjoint_union(barbell, networkx.complete_graph(10))
    barbell.add_edges_from([(9, 10), (10, 11)])
    options = {"start": index["start"], "times": arrays["times"]}
    heat = qdc.dynamics(barbell, "heat", **options)
    psi = qdc.dynamics(barbell, "schrodinger", **options)
    np.testing.assert_allclose(heat, arrays["heat"], atol=1e-10)
    np.testing.assert_allclose(psi, arrays["psi_re"] + 1j * arrays["psi_im"], atol=1e-10)
    state = np.zeros(21, dtype=complex)
    state[index["start"]] = 1j
    turned = qdc.dynamics(barbell, start=state, times=arrays["times"])
    np.testing.assert_allclose(turned, 1j * psi, atol=1e-12)
    with pytest.raises(qdc.ParameterError, match="no vertex"):
        qdc.dynamics(barbell, start=21)
    with pytest.raises(qdc.ParameterError, match="equation"):
        qdc.dynamics(barbell, "wave")  # type: ignore[arg-type]


def test_kernels_go_to_other_packages(karate: sparse.csr_array) -> None:
    kernel = qdc.kernel(karate, mu=0.3, sigma=0.1, normalize=None)
    network = qdc.convert.to_networkx(kernel)
    assert not network.is_directed()
    np.testing.assert_allclose(networkx.to_numpy_array(network), kernel.toarray())
    by_rows = qdc.kernel(karate, mu=0.3, sigma=0.1, normalize="row")
    assert qdc.convert.to_networkx(by_rows).is_directed()
    index, weight = qdc.convert.to_edge_index(by_rows, dtype=torch.float64)
    rebuilt = torch.sparse_coo_tensor(index, weight, (34, 34)).to_dense().T
    np.testing.assert_allclose(rebuilt.numpy(), by_rows.toarray())


def test_dgl_graphs_go_in_and_come_out(karate: sparse.csr_array, monkeypatch: pytest.MonkeyPatch) -> None:
    """DGL itself has no build for current torch: a stand-in with the five members that are used."""
    import sys
    import types

    class DGLGraph:
        def __init__(self, edges: tuple[torch.Tensor, torch.Tensor], num_nodes: int) -> None:
            self._edges, self._nodes, self.edata = edges, num_nodes, dict[str, torch.Tensor]()

        def edges(self) -> tuple[torch.Tensor, torch.Tensor]:
            return self._edges

        def num_nodes(self) -> int:
            return self._nodes

    DGLGraph.__module__ = "dgl.heterograph"
    stand_in = types.ModuleType("dgl")
    stand_in.graph = DGLGraph  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dgl", stand_in)
    kernel = qdc.kernel(karate, mu=0.3, sigma=0.1)
    graph = qdc.convert.to_dgl(kernel)
    assert graph.num_nodes() == 34 and len(graph.edata["weight"]) == kernel.nnz
    assert qdc.Graph(qdc.convert.to_dgl(karate)) == qdc.Graph(karate)


def test_the_scikit_learn_transformer_clones_fits_and_transforms(karate: sparse.csr_array) -> None:
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError

    from qdc.sklearn import DiffusionKernel

    transformer = clone(DiffusionKernel(mu=0.3, sigma=0.1, sparsify=qdc.TopK(4)))
    assert transformer.get_params()["sparsify"] == qdc.TopK(4)
    with pytest.raises(NotFittedError):
        transformer.transform(karate)
    made = transformer.fit_transform(karate)
    expected = qdc.kernel(karate, mu=0.3, sigma=0.1, sparsify=qdc.TopK(4))
    assert np.array_equal(made.toarray(), expected.toarray()) and transformer.n_features_in_ == 34
    assert transformer.set_params(mu=0.5).mu == 0.5


NOT_FOR_GRAPHS = {
    # They hand over similarities that differ in the last bit by orientation, slices, or rows in another order.
    "check_estimators_overwrite_params",
    "check_pipeline_consistency",
    "check_estimators_pickle",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit_idempotent",
    "check_sparsify_coefficients",
    "check_dtype_object",
    # Nothing is learned, so graphs of another size are welcome.
    "check_n_features_in_after_fitting",
    # Our messages say more than the words that are looked for.
    "check_positive_only_tag_during_fit",
    "check_complex_data",
    "check_estimators_empty_data_messages",
    "check_estimators_nan_inf",
    "check_fit2d_predict1d",
    # The default is a rule, an immutable object that clones and compares.
    "check_parameters_default_constructible",
}


@pytest.mark.filterwarnings("ignore")
def test_the_scikit_learn_transformer_passes_the_checks_that_apply_to_graphs() -> None:
    from sklearn.utils.estimator_checks import check_estimator

    from qdc.sklearn import DiffusionKernel

    results = check_estimator(DiffusionKernel(), on_skip=None, on_fail=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert failed.keys() <= NOT_FOR_GRAPHS, {name: failed[name] for name in failed.keys() - NOT_FOR_GRAPHS}
    assert sum(result["status"] == "passed" for result in results) > 30
