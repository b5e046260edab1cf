"""What can be a graph, and what is refused with which words."""

from __future__ import annotations

import pickle
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from scipy import sparse

import qdc


def test_every_kind_of_input_gives_the_same_graph(karate: sparse.csr_array) -> None:
    network = networkx.karate_club_graph()
    pairs = np.array(network.edges)
    both = np.array(karate.nonzero())
    forms: list[Any] = [
        karate,
        sparse.csr_matrix(karate),
        karate.tocoo(),
        karate.tocsc().astype(np.float32),
        karate.astype(np.int8),
        karate.astype(bool),
        karate.toarray(),
        pairs,
        pairs.astype(np.int16),
        pairs[::-1, ::-1],
        np.concatenate([pairs, pairs[:, ::-1], pairs]),
        both,
        both.astype(np.uint32),
        torch.from_numpy(both),
        torch.from_numpy(both).int(),
        networkx.Graph(list(network.edges)),
    ]
    expected = qdc.Graph(karate)
    for form in forms[:-1]:
        assert qdc.Graph(form) == expected, type(form)
    # NetworkX keeps vertices in the order they appeared in.
    assert qdc.Graph(forms[-1]).edges == expected.edges
    assert qdc.Graph(network) != expected, "its edges carry weights"


def test_weights_nodes_and_loops() -> None:
    pairs = np.array([[0, 1], [1, 2], [2, 2]])
    graph = qdc.Graph(pairs, weights=[2, 0.5, 1], nodes=5)
    assert (graph.nodes, graph.edges, graph.self_loops, len(graph)) == (5, 2, 1, 5)
    assert graph.adjacency[1, 2] == 0.5
    assert qdc.Graph(torch.tensor([[0, 1], [1, 0]]), weights=torch.tensor([3.0, 3.0])).adjacency[0, 1] == 3.0
    arcs = sparse.coo_array(([2.0, 4.0, 3.0], ([0, 1, 1], [1, 0, 2])), shape=(3, 3))
    assert qdc.Graph(arcs, symmetrize="max").adjacency[0, 1] == 4.0
    assert qdc.Graph(arcs, symmetrize="mean").adjacency[1, 2] == 1.5
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_two_edges_are_edges_and_no_matrix_and_every_valid_reading_agrees() -> None:
    assert qdc.Graph(np.array([[0, 1], [1, 2]])).nodes == 3
    one_edge = np.array([[0, 1], [1, 0]])  # two pairs, an edge_index, or a matrix
    assert qdc.Graph(one_edge) == qdc.Graph(torch.from_numpy(one_edge)) == qdc.Graph(one_edge.astype(float))


def test_the_users_matrix_is_never_changed() -> None:
    messy = sparse.csr_array((np.ones(4), np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 2))
    before = messy.indices.copy()
    assert qdc.Graph(messy).adjacency[0, 1] == 2.0  # SciPy adds up copies
    assert np.array_equal(messy.indices, before) and messy.nnz == 4


REFUSED: list[tuple[str, Any, type[Exception], str, str]] = [
    ("float16", np.eye(3, dtype=np.float16), qdc.GraphError, "float16", "astype"),
    ("complex", np.eye(3, dtype=complex), qdc.GraphError, "complex128", "give a SciPy"),
    ("complex sparse", sparse.eye_array(3, dtype=complex), qdc.GraphError, "complex128", "astype"),
    ("objects", np.array([["a", "b"]], dtype=object), qdc.GraphError, "object", "give a SciPy"),
    ("strings", "karate", qdc.GraphError, "str", "give a SciPy"),
    ("not square", np.ones((3, 4)), qdc.GraphError, r"square.*\(3, 4\)", "shape"),
    ("not square sparse", sparse.csr_array((3, 4)), qdc.GraphError, r"square.*\(3, 4\)", "shape"),
    ("one dimension", np.arange(4), qdc.GraphError, r"shape \(4,\)", "square"),
    ("nan", np.array([[0, np.nan], [np.nan, 0]]), qdc.GraphError, "weight NaN", ""),
    ("infinite", np.array([[0, np.inf], [np.inf, 0]]), qdc.GraphError, "weight inf", ""),
    ("negative", np.array([[0, -1.0], [-1.0, 0]]), qdc.GraphError, "weight -1", ""),
    ("directed", np.array([[0, 1.0], [0, 0]]), qdc.GraphError, "directed", 'symmetrize="or"'),
    ("directed edge_index", torch.tensor([[0, 1, 2], [1, 2, 0]]), qdc.GraphError, "directed", "symmetrize"),
    ("directed network", networkx.DiGraph([(0, 1)]), qdc.GraphError, "directed", "symmetrize"),
    ("multigraph", networkx.MultiGraph([(0, 1), (0, 1)]), qdc.GraphError, "multigraph", "networkx.Graph"),
    ("empty", np.zeros((0, 0)), qdc.GraphError, "no vertices", "at least one row"),
    ("empty edges", np.zeros((0, 2), dtype=int), qdc.GraphError, "no vertices", "at least one row"),
    ("empty network", networkx.Graph(), qdc.GraphError, "no vertices", "at least one row"),
    ("beyond u32", np.array([[0, 2**33], [1, 5], [2, 3]]), qdc.GraphError, "8589934592", "numpy.unique"),
    ("beyond i64", np.array([[0, 2**63 + 1], [1, 5], [2, 3]], dtype=np.uint64), qdc.GraphError, "not fit", "unique"),
    ("negative vertex", np.array([[0, -1], [1, 2], [2, 0]]), qdc.GraphError, r"\(0, -1\)", "count from 0"),
    ("sparse tensor", torch.eye(3).to_sparse(), qdc.GraphError, "sparse_coo", "edge_index"),
    ("float tensor", torch.ones(3, 3), qdc.GraphError, "no edge_index", "numpy"),
]


@pytest.mark.parametrize("source, family, message, hint", [pytest.param(*case[1:], id=case[0]) for case in REFUSED])
def test_what_is_no_graph_is_refused_with_advice(source: Any, family: type[Exception], message: str, hint: str) -> None:
    with pytest.raises(family, match=message) as refused:
        qdc.kernel(source)
    assert isinstance(refused.value, qdc.QdcError) and isinstance(refused.value, ValueError)
    assert hint in (refused.value.hint or "")


def test_weights_that_do_not_fit_are_refused() -> None:
    pairs = np.array([[0, 1], [1, 2], [2, 3]])
    with pytest.raises(qdc.GraphError, match="shape"):
        qdc.Graph(pairs, weights=[1.0])
    with pytest.raises(qdc.GraphError, match="float16"):
        qdc.Graph(pairs, weights=np.ones(3, dtype=np.float16))
    for narrow in (torch.float16, torch.bfloat16):
        with pytest.raises(qdc.GraphError, match="float16") as refused:
            qdc.Graph(torch.tensor([[0, 1], [1, 0]]), weights=torch.ones(2, dtype=narrow))
        assert ".float()" in (refused.value.hint or "")
    with pytest.raises(qdc.GraphError, match=r"outside 0\.\.2"):
        qdc.Graph(pairs, nodes=2)
    with pytest.raises(qdc.GraphError, match="its own weights"):
        qdc.Graph(sparse.eye_array(3), weights=[1.0])
    with pytest.raises(qdc.GraphError, match="again with weight"):
        qdc.Graph(np.array([[0, 1], [0, 1], [1, 2]]), weights=[1.0, 2.0, 1.0])
    with pytest.raises(qdc.GraphError, match="again with weight"):
        qdc.Graph(torch.tensor([[0, 0, 1, 1], [1, 1, 0, 0]]), weights=[1.0, 2.0, 1.0, 2.0])
    with pytest.raises(qdc.ParameterError, match="symmetrize"):
        qdc.Graph(pairs, symmetrize="xor")  # type: ignore[arg-type]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sigma": 0.0}, "sigma = 0"),
    ({"mu": float("nan")}, "mu = NaN"),
    ({"filter": "ppr", "mu": 0.3}, "does not take mu"),
    ({"filter": "ppr", "alpha": 2.0}, "alpha = 2"),
    ({"filter": "sinc"}, "'sinc' is unknown"),
    ({"filter": qdc.Filter.heat(1.0), "time": 2.0}, "next to a filter"),
    ({"filter": 3}, "function of the eigenvalue"),
    ({"pairs": 0}, "pairs"),
    ({"pairs": "some"}, "pairs"),
    ({"solver": "magic"}, "not a solver"),
    ({"sign": "odd"}, "neither positive nor absolute"),
    ({"normalize": "max"}, "max"),
    ({"precision": "f16"}, "f16"),
    ({"self_loop": -1.0}, "self_loop = -1"),
    ({"sparsify": 0.1}, "no rule"),
    ({"memory": -1}, "memory = -1"),
    ({"threads": 1.5}, "threads = 1.5"),
    ({"threads": 0}, "threads = 0"),
    ({"progress": 3}, "cannot be called"),
]


@pytest.mark.parametrize("options, message", WRONG)
def test_parameters_out_of_range_are_refused_by_name(
    karate: sparse.csr_array, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(qdc.ParameterError, match=message):
        qdc.kernel(karate, **options)


def test_more_threads_than_the_cores_can_use_are_fewer_with_a_warning(karate: sparse.csr_array) -> None:
    with pytest.warns(RuntimeWarning, match="60000 threads are more than .* cores can use"):
        many = qdc.kernel(karate, threads=60000)
    assert (many != qdc.kernel(karate, threads=1)).nnz == 0


def test_rules_are_checked_when_they_are_made() -> None:
    for make in (lambda: qdc.TopK(0), lambda: qdc.TopK(1.5), lambda: qdc.Epsilon(float("nan"))):  # type: ignore[arg-type]
        with pytest.raises(qdc.ParameterError):
            make()
    assert qdc.TopK(3) == qdc.TopK(3) != qdc.TopK(4)
    assert repr(qdc.Epsilon(0.5)) == "Epsilon(epsilon=0.5)"


def test_too_little_memory_is_an_error_of_its_own(random_graph: sparse.csr_array) -> None:
    with pytest.raises(qdc.MemoryLimitError, match="memory") as refused:
        qdc.Spectrum(random_graph, memory=1000, solver="dense")
    assert isinstance(refused.value, MemoryError) and "--" not in str(refused.value)


def test_exceptions_survive_pickling() -> None:
    error = qdc.GraphError("wrong", 'do pairs=512 or solver="dense"')
    again = pickle.loads(pickle.dumps(error))
    command = qdc.DataError("missing", "fetch it: qdc data get cora --mirror URL")
    assert command.hint == "fetch it: qdc data get cora --mirror URL"
    assert str(again) == str(error) == 'wrong\nhint: do pairs=512 or solver="dense"'


def test_filters_compare_print_and_pickle() -> None:
    for chosen in (qdc.Filter.gaussian(0.3, 0.1), qdc.Filter.band(0.1), qdc.Filter.ppr(), qdc.Filter.heat(2.0)):
        again = pickle.loads(pickle.dumps(chosen))
        assert again == chosen and hash(again) == hash(chosen)
        assert eval(repr(chosen), {"Filter": qdc.Filter}) == chosen
    assert pickle.loads(pickle.dumps(qdc.Filter.custom(np.cos)))(0.0) == 1.0
    assert qdc.Filter.heat(1.0) != qdc.Filter.heat(2.0)
