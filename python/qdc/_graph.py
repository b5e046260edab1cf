"""Graphs: whatever Python keeps a graph in, read as an undirected one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from . import _core
from .errors import GraphError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Symmetrize: TypeAlias = Literal["or", "max", "mean"]
GraphLike: TypeAlias = Any
"""A ``Graph``, a SciPy sparse matrix or array, a NumPy array, a NetworkX or DGL graph, or a torch ``edge_index``."""

_MOST_VERTICES = 2**32 - 1
_DIRECTED = 'say how to make it undirected: qdc.Graph(..., symmetrize="or"), "max" or "mean"'


class Graph(_core.Graph):
    """An undirected graph with weights >= 0 and without self-loops (those of the input are dropped and counted).

    Every function of qdc that takes a graph takes what this class takes; making the ``Graph`` once saves reading it
    again in every call.

    ``source`` is one of

    - a SciPy sparse matrix or array, or a square NumPy array: the adjacency matrix, which must be symmetric;
    - a NumPy array of integers of shape (m, 2), also (2, 2): m undirected pairs of vertices, each in either
      orientation or both;
    - a NumPy array of integers of shape (2, m), or a torch ``edge_index``: every edge must be there both ways, as
      PyTorch Geometric keeps undirected graphs;
    - a NetworkX graph (vertices in its own order, weights from the attribute ``weight``) or a DGL graph.

    ``weights`` holds one weight for each edge of an edge array (1 by default), ``nodes`` the number of vertices
    (by default one more than the largest named). A directed graph is an error unless ``symmetrize`` says how to
    join the two orientations: ``"or"`` (an edge stands where either does), ``"max"``, ``"mean"``.

    >>> import numpy as np, qdc
    >>> triangle = qdc.Graph(np.array([[0, 1], [1, 2], [2, 0], [2, 2]]))
    >>> triangle
    Graph(nodes=3, edges=3)
    >>> triangle.self_loops
    1
    """

    def __new__(
        cls,
        source: GraphLike,
        *,
        weights: Any = None,
        nodes: int | None = None,
        symmetrize: Symmetrize | None = None,
    ) -> Graph:
        count, rows, columns, values, rule = _arcs(source, weights, nodes)
        return super().__new__(cls, count, rows, columns, values, symmetrize or rule)

    @property
    def adjacency(self) -> sparse.csr_array:
        """The adjacency matrix: symmetric, zero diagonal."""
        return csr(self.arrays(), self.nodes)

    def __len__(self) -> int:
        return self.nodes

    def __repr__(self) -> str:
        return f"Graph(nodes={self.nodes}, edges={self.edges})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return all(map(np.array_equal, self.arrays(), other.arrays()))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Graph, (self.adjacency,)


def as_graph(source: GraphLike) -> Graph:
    """``source`` itself if it is a ``Graph``, else the ``Graph`` of it."""
    return source if isinstance(source, Graph) else Graph(source)


def as_numpy(values: Any, what: str) -> NDArray[Any]:
    """A torch tensor on any device, or what NumPy reads, as an array."""
    if type(values).__module__.partition(".")[0] != "torch":
        return np.asarray(values)
    try:
        return values.detach().cpu().numpy()  # type: ignore[no-any-return]
    except (TypeError, RuntimeError):  # sparse layouts and types that NumPy does not have
        message = f"{what}: a tensor of type {values.dtype} and layout {values.layout} has no counterpart in NumPy"
        raise GraphError(message, "give edge_index as integers of shape (2, m), and weights as .float()") from None


def csr(arrays: tuple[Any, Any, Any], columns: int) -> sparse.csr_array:
    """A sparse array over (data, indices, indptr) that are right by construction."""
    matrix = sparse.csr_array(arrays, shape=(len(arrays[2]) - 1, columns), copy=False)
    matrix.has_canonical_format = True
    return matrix


_Arcs: TypeAlias = "tuple[int, NDArray[Any], NDArray[Any], NDArray[Any] | None, str]"


def _arcs(source: Any, weights: Any, nodes: int | None) -> _Arcs:
    """The arcs of ``source``: number of vertices, starts, ends, weights, and the rule to read them by."""
    module = type(source).__module__.partition(".")[0]
    if isinstance(source, Graph):
        source = source.adjacency
    if sparse.issparse(source):
        return _of_matrix(source, weights, nodes)
    if module == "networkx":
        return _of_networkx(source, weights, nodes)
    if module == "dgl":
        starts, ends = source.edges()
        source, nodes = np.stack([starts.cpu().numpy(), ends.cpu().numpy()]), source.num_nodes()
    elif module == "torch":
        source = as_numpy(source, "a graph")
        if source.ndim != 2 or source.shape[0] != 2 or source.dtype.kind not in "iu":
            message = f"a tensor of shape {source.shape} and type {source.dtype} is no edge_index"
            raise GraphError(message, "give integers of shape (2, m), or a dense adjacency matrix as tensor.numpy()")
        return _of_edges(source[0], source[1], weights, nodes, "both")
    array = np.asarray(source)
    if array.dtype.kind not in "iufb":
        raise GraphError(
            f"cannot read {type(source).__name__} of type {array.dtype} as a graph",
            "give a SciPy sparse array, a NumPy array of edges, a NetworkX graph or a torch edge_index",
        )
    integers = array.dtype.kind in "iu"
    if array.ndim == 2 and array.shape[1] == 2 and (integers or array.size == 0):
        return _of_edges(array[:, 0], array[:, 1], weights, nodes, "pairs")
    if array.ndim == 2 and array.shape[0] == 2 and (integers or array.size == 0):
        return _of_edges(array[0], array[1], weights, nodes, "both")
    if array.ndim == 2:
        return _of_matrix(array, weights, nodes)
    raise GraphError(
        f"an array of shape {array.shape} is no graph",
        "give edges as integers of shape (m, 2) or (2, m), or a square adjacency matrix",
    )


def _of_matrix(matrix: Any, weights: Any, nodes: int | None) -> _Arcs:
    if matrix.shape[0] != matrix.shape[1]:
        raise GraphError(
            f"an adjacency matrix is square; this one has shape {matrix.shape}",
            "edges go in as integers of shape (m, 2) or (2, m)",
        )
    if weights is not None or (nodes is not None and nodes != matrix.shape[0]):
        raise GraphError("an adjacency matrix brings its own weights and vertices", "leave out weights= and nodes=")
    _check_number_type("the adjacency matrix", matrix.dtype)
    if sparse.issparse(matrix) and matrix.format == "csr" and not matrix.has_canonical_format:
        matrix = matrix.copy()  # summing copies happens in place, and the user's matrix is not ours to change
        matrix.sum_duplicates()
    arcs = sparse.coo_array(matrix)
    arcs.sum_duplicates()
    return matrix.shape[0], _index_array(arcs.row), _index_array(arcs.col), _weight_array(arcs.data), "both"


def _of_edges(starts: NDArray[Any], ends: NDArray[Any], weights: Any, nodes: int | None, rule: str) -> _Arcs:
    if starts.dtype.kind == "f" and starts.size:
        raise GraphError(f"edges name vertices by integers, not {starts.dtype}", "convert with .astype(numpy.int64)")
    starts, ends = _index_array(starts), _index_array(ends)
    if nodes is None:
        nodes = int(max(starts.max(initial=-1), ends.max(initial=-1))) + 1
        if nodes > _MOST_VERTICES:
            raise GraphError(
                f"vertex {nodes - 1} does not fit: vertices are numbered below {_MOST_VERTICES}",
                "renumber them: vertices, edges = numpy.unique(edges, return_inverse=True)",
            )
    elif nodes < 0:
        raise GraphError(f"nodes = {nodes} is negative", "state the number of vertices")
    if weights is None:
        return nodes, starts, ends, None, rule
    weights = as_numpy(weights, "weights")
    _check_number_type("weights", weights.dtype)
    if weights.shape != starts.shape:
        raise GraphError(
            f"weights of shape {weights.shape} for {len(starts)} edges",
            "give one weight for each edge, in one dimension",
        )
    return nodes, starts, ends, _weight_array(weights), rule


def _of_networkx(graph: Any, weights: Any, nodes: int | None) -> _Arcs:
    import networkx

    if weights is not None or nodes is not None:
        raise GraphError("a NetworkX graph brings its own weights and vertices", "leave out weights= and nodes=")
    if graph.is_multigraph():
        raise GraphError("a multigraph has several edges between two vertices", "join them: networkx.Graph(graph)")
    if graph.number_of_nodes() == 0:
        return 0, np.empty(0, np.int64), np.empty(0, np.int64), None, "pairs"
    return _of_matrix(networkx.to_scipy_sparse_array(graph, format="coo"), None, None)


def _check_number_type(what: str, dtype: np.dtype[Any]) -> None:
    if dtype == np.float16:
        raise GraphError(
            f"{what} in float16 cannot hold weights well enough to compare them",
            "convert them: .astype(numpy.float32) in NumPy, .float() in torch",
        )
    if dtype.kind not in "iufb" or dtype.itemsize > 8:
        raise GraphError(f"{what} must be real numbers, not {dtype}", "convert with .astype(numpy.float64)")


def _index_array(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype in (np.int32, np.int64):
        return array
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise GraphError(f"vertex {array.max()} does not fit", "renumber with numpy.unique(edges, return_inverse=True)")
    return array.astype(np.int64)


def _weight_array(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
