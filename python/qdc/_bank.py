"""The channels of a bank of windows as arrays, for any library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from . import _core
from ._call import Progress, call, memory_limit
from ._graph import GraphLike, as_graph, as_numpy
from .errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Preset: TypeAlias = Literal["ends", "ends-dropout", "ends-knn", "ranks", "plain"]


def bank_features(
    graph: GraphLike,
    features: Any,
    preset: Preset = "ends",
    *,
    memory: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, NDArray[np.float32]]:
    """The channels that ``qdc train --model bank`` learns from with a preset, by name, one row for each vertex.

    ``ends`` and ``ends-dropout`` have X, L X, and Gaussian windows of L at 1 (sigma 1, 1/2, 1/4, 1/8) and at its lowest
    eigenvalue (sigma 1, 1/2); ``ends-knn`` those and L X and two windows on the graph of the ten nearest neighbours in
    feature space; ``plain`` those of ``ends`` with rows of features that sum to 1; ``ranks`` X, five hard windows of
    equal count over the spectrum, the rows of the adjacency and statistics of the vertices (it needs every eigenpair,
    computed within ``memory`` bytes). ``features`` is a NumPy array, a SciPy sparse array or a tensor with a row for
    each vertex.

    >>> import networkx, numpy as np, qdc
    >>> channels = qdc.bank_features(networkx.karate_club_graph(), np.eye(34))
    >>> list(channels)[:3]
    ['X', 'L X', 'gaussian(mu 1, sigma 1)']
    >>> {array.shape for array in channels.values()}
    {(34, 34)}

    ``qdc.pyg.FilterBank`` takes them as a list of tensors; so does any network with a matrix for each.
    """
    given = features.toarray() if sparse.issparse(features) else as_numpy(features, "features")
    dense = np.ascontiguousarray(given, dtype=np.float32)
    read = as_graph(graph)
    if dense.ndim != 2 or dense.shape[1] == 0 or dense.shape[0] != read.nodes:
        raise DataError(f"features of shape {dense.shape} for {read.nodes} vertices", "give one row for each vertex")
    if not np.isfinite(dense).all():
        vertex = int(np.flatnonzero(~np.isfinite(dense).all(axis=1))[0])
        raise DataError(f"the features of vertex {vertex} are not finite", "replace NaN and infinite values first")
    named = _core.bank_features(read, dense, preset, memory_limit(memory), call(threads, progress))
    return dict(named)
