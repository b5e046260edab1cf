"""Labelled graphs: datasets by name, files, generators, and your own arrays.

>>> import qdc
>>> qdc.datasets.names()[:4]
['cornell', 'texas', 'wisconsin', 'chameleon']
>>> qdc.datasets.load("csbm:n=100,homophily=0.2,seed=0")
Dataset('csbm:n=100,homophily=0.2,seed=0', nodes=100, features=32, classes=2, splits=10)
"""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from . import _core
from ._graph import Graph, GraphLike, as_graph, as_numpy, csr
from ._homophily import label_array
from .errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Dataset", "load", "names"]


class Dataset:
    """A graph with features and labels on its vertices, and splits into training, validation and test.

    ``load`` makes one by name; here it is made of arrays: ``features`` (vertices, features) and one label for each
    vertex. ``masks`` are three arrays of booleans of shape (splits, vertices): training, validation, test. Without
    them ten random splits are drawn with the shares ``split``.

    >>> import networkx, numpy as np, qdc
    >>> ring = networkx.cycle_graph(20)
    >>> qdc.datasets.Dataset(ring, np.eye(20), labels=["even", "odd"] * 10)
    Dataset('arrays', nodes=20, features=20, classes=2, splits=10)
    """

    def __init__(
        self,
        graph: GraphLike,
        features: Any,
        labels: Any,
        *,
        masks: tuple[Any, Any, Any] | None = None,
        name: str = "arrays",
        split: str = "48/32/20",
        seed: int = 0,
    ) -> None:
        given = features.toarray() if sparse.issparse(features) else as_numpy(features, "features")
        dense = np.ascontiguousarray(given, dtype=np.float32)
        if dense.ndim != 2 or dense.shape[1] == 0:
            raise DataError(f"features of shape {dense.shape}", "give one row for each vertex, of at least one column")
        read = as_graph(graph)
        three = None if masks is None else [np.atleast_2d(as_numpy(mask, "masks").astype(bool)) for mask in masks]
        if three is not None and {mask.shape for mask in three} != {(len(three[0]), read.nodes)}:
            raise DataError(f"masks of shapes {[mask.shape for mask in three]}", "give three of (splits, vertices)")
        self._core = _core.Dataset.of_arrays(name, read, dense, label_array(labels), three, split, seed)

    @property
    def name(self) -> str:
        """What it is called."""
        return self._core.name

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self._core.classes

    @cached_property
    def graph(self) -> Graph:
        """The graph."""
        return Graph(csr(self._core.adjacency_arrays(), len(self.labels)))

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """Labels, one for each vertex, from 0."""
        return self._core.labels

    @cached_property
    def features(self) -> sparse.csr_array | NDArray[np.float32]:
        """Features, one row for each vertex; a sparse array where most are 0."""
        parts = self._core.sparse_features()
        if parts is None:
            return self._core.dense_features()
        *arrays, columns = parts
        return sparse.csr_array(tuple(arrays), shape=(len(self.labels), columns), copy=False)

    @cached_property
    def train_masks(self) -> NDArray[np.bool_]:
        """(splits, vertices): the vertices to train on."""
        return self._core.masks("train")

    @cached_property
    def validation_masks(self) -> NDArray[np.bool_]:
        """(splits, vertices): the vertices that stop the training."""
        return self._core.masks("validation")

    @cached_property
    def test_masks(self) -> NDArray[np.bool_]:
        """(splits, vertices): the vertices that are scored."""
        return self._core.masks("test")

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, nodes={self.graph.nodes}, features={self.features.shape[1]}, "
            f"classes={self.classes}, splits={len(self.train_masks)})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        masks = (self.train_masks, self.validation_masks, self.test_masks)
        return _of_arrays, (self.graph, self.features, self.labels, masks, self.name)


def _of_arrays(graph: Graph, features: Any, labels: Any, masks: Any, name: str) -> Dataset:
    return Dataset(graph, features, labels, masks=masks, name=name)


def load(name: str, data_dir: str | PathLike[str] | None = None, *, split: str = "48/32/20", seed: int = 0) -> Dataset:
    """A dataset by name, a dataset file (.npz), or a labelled generator such as ``csbm:n=1000,homophily=0.2,seed=0``.

    Named datasets lie in ``data_dir``, by default the folder that QDC_DATA names or else the user's cache folder;
    ``python -m qdc data get NAME`` fetches them. Where there are no splits of its own, ten random ones are drawn with
    the shares ``split`` and the given ``seed``.
    """
    loaded = object.__new__(Dataset)
    loaded._core = _core.Dataset(name, data_dir, split, seed)
    return loaded


def names() -> list[str]:
    """The names of the datasets."""
    return _core.dataset_names()
