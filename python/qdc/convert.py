"""Kernels and graphs in the formats of other packages; going in, ``qdc.Graph`` reads them all."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ._graph import Graph

__all__ = ["to_dgl", "to_edge_index", "to_networkx"]


def to_networkx(matrix: sparse.sparray | Graph) -> Any:
    """A ``networkx.Graph`` (a ``DiGraph`` where the matrix is not symmetric) with the entries as ``weight``.

    >>> import networkx, qdc
    >>> qdc.convert.to_networkx(qdc.kernel(networkx.karate_club_graph())).number_of_nodes()
    34
    """
    import networkx

    matrix = _csr(matrix)
    symmetric = matrix.nnz == 0 or abs(matrix - matrix.T).max() == 0
    return networkx.from_scipy_sparse_array(matrix, create_using=networkx.Graph if symmetric else networkx.DiGraph)


def to_edge_index(
    matrix: sparse.sparray | Graph, dtype: Any = None, device: Any = None, *, symmetric: bool = False
) -> tuple[Any, Any]:
    """(edge_index, edge_weight) of torch, such that message passing multiplies features by the matrix.

    Entry (i, j) is the message from j to i, so ``edge_index`` holds [j, i]; edges come sorted by j, then i, as
    PyTorch Geometric likes them. ``dtype`` is that of the weights, by default torch's own. ``symmetric`` promises a
    symmetric matrix, which need not be transposed for that.
    """
    import torch

    entries = _csr(matrix)
    if not symmetric:
        entries = entries.T.tocsr()
    index = torch.empty((2, entries.nnz), dtype=torch.int64)
    index.numpy()[0] = np.repeat(np.arange(entries.shape[0], dtype=np.int32), np.diff(entries.indptr))
    index.numpy()[1] = entries.indices
    weight = torch.from_numpy(entries.data).to(dtype or torch.get_default_dtype())
    return index.to(device), weight.to(device)


def to_dgl(matrix: sparse.sparray | Graph) -> Any:
    """A ``dgl.DGLGraph`` with the entries as ``edata["weight"]``."""
    import dgl

    entries = _csr(matrix)
    index, weight = to_edge_index(entries)
    graph = dgl.graph((index[0], index[1]), num_nodes=entries.shape[0])
    graph.edata["weight"] = weight
    return graph


def _csr(matrix: Any) -> sparse.csr_array:
    return matrix.adjacency if isinstance(matrix, Graph) else sparse.csr_array(matrix)
