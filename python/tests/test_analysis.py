"""Homophily, SDRF and the dynamics against the golden files; conversions."""

from __future__ import annotations

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


@pytest.mark.parametrize("variant", ["formula", "code"])
@pytest.mark.parametrize("name", ["karate", "barbell", "random"])
def test_sdrf_equals_the_golden_file(name: str, variant: str) -> None:
    arrays, index = golden(f"curvature_{name}.npz"), golden("curvature.json")
    steps = arrays[f"{variant}.steps"]
    options = {"iterations": len(steps), "removal_bound": index["removal_bound"], "variant": variant}
    after, report = qdc.sdrf(qdc.Graph(arrays["edges"]), **options, return_report=True)
    assert np.array_equal(np.array(sparse.triu(after).nonzero()).T, arrays[f"{variant}.edges_after"])
    assert report["added"] == int((steps[:, 2] >= 0).sum())


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
    assert np.array_equal(made.toarray(), expected.toarray()) and transformer.report_["nodes"] == 34
    assert transformer.set_params(mu=0.5).mu == 0.5
