"""Homophily: how often neighbours share a label, in the graph and in each part of its spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _core
from ._call import Progress, Report, call, whole
from ._graph import GraphLike, as_graph, as_numpy
from ._kernel import Sign
from ._spectrum import Spectrum
from .errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WINDOWS = tuple((round(-0.9 + 0.1 * step, 1), 0.1) for step in range(20))


def homophily(graph: GraphLike, labels: Any, kind: Literal["node", "node_with_neighbours", "edge"] = "node") -> float:
    """How often neighbours share a label.

    ``"node"`` is the mean over all vertices of the share of neighbours with the same label, where a vertex without
    neighbours counts 0; ``"node_with_neighbours"`` leaves such vertices out; ``"edge"`` is the share of edges whose
    ends share a label. Self-loops do not count.

    >>> import numpy as np, qdc
    >>> path = np.array([[0, 1], [1, 2]])
    >>> qdc.homophily(path, [0, 0, 1])
    0.5
    """
    measured = _core.homophily(as_graph(graph), label_array(labels))
    if kind not in measured:
        raise ParameterError(f"kind = {kind!r} is unknown", "choose node, node_with_neighbours or edge")
    return measured[kind]


@dataclass(frozen=True, repr=False, eq=False)
class SpectralHomophily:
    """Homophily through each distinct eigenvalue; every array has one entry for each of them."""

    eigenvalues: NDArray[np.float64]
    """Distinct eigenvalues of the transition matrix, ascending."""
    multiplicities: NDArray[np.int64]
    """How many eigenvectors belong to each."""
    homophily: NDArray[np.float64]
    """The main reading: entries above 1e-7 of the projector, each counting 1, averaged over all vertices."""
    _points: list[Report] = field(default_factory=list)

    def reading(
        self, sign: Sign = "positive", *, weighted: bool = False, with_neighbours: bool = False
    ) -> NDArray[np.float64]:
        """Another reading of the same projectors.

        ``sign="absolute"`` counts negative entries too, by their magnitude; ``weighted`` counts each entry by its
        magnitude; ``with_neighbours`` averages over the vertices that have an entry at all.
        """
        if sign not in ("positive", "absolute"):
            raise ParameterError(f"sign = {sign!r} is unknown", "choose positive or absolute")
        entries = "signed" if sign == "positive" else "absolute"
        name = ("weighted" if weighted else "unweighted") + ("_with_neighbours" if with_neighbours else "")
        return np.array([point[entries][name] for point in self._points])

    def __len__(self) -> int:
        return len(self.eigenvalues)

    def __repr__(self) -> str:
        return (
            f"SpectralHomophily({len(self)} eigenvalues from {self.eigenvalues[0]:.3f} to {self.eigenvalues[-1]:.3f})"
        )


def spectral_homophily(
    graph: GraphLike | Spectrum,
    labels: Any,
    *,
    memory: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> SpectralHomophily:
    """The homophily that each distinct eigenvalue of the transition matrix sees.

    The eigenvectors of one eigenvalue draw a graph, the projector onto their span: its off-diagonal entries above
    1e-7 are edges. Its homophily tells which part of the spectrum joins like with like, and so where to put mu.

    Needs all eigenpairs (give a ``Spectrum`` to reuse them) and N^2 operations for each: seconds on cora, a minute on
    squirrel. ``window_homophily`` estimates what a window sees without any.

    >>> import networkx, qdc
    >>> club = networkx.karate_club_graph()
    >>> sides = [club.nodes[vertex]["club"] for vertex in club]
    >>> seen = qdc.spectral_homophily(club, sides)
    >>> seen
    SpectralHomophily(34 eigenvalues from -0.582 to 1.000)
    >>> seen.eigenvalues[-2:].round(3), seen.homophily[-2:].round(3)
    (array([0.899, 1.   ]), array([0.941, 0.485]))
    """
    how = call(threads, progress)
    spectrum = graph if isinstance(graph, Spectrum) else Spectrum(graph, memory=memory, **how)
    points = _core.spectral_homophily(spectrum._core, label_array(labels), how)
    return SpectralHomophily(
        eigenvalues=np.array([point["eigenvalue"] for point in points]),
        multiplicities=np.array([point["multiplicity"] for point in points], dtype=np.int64),
        homophily=np.array([point["signed"]["unweighted"] for point in points]),
        _points=points,
    )


@dataclass(frozen=True, eq=False)
class WindowHomophily:
    """Homophily through Gaussian windows on the spectrum, estimated; every array has one entry for each window."""

    mu: NDArray[np.float64]
    """Centres of the windows."""
    sigma: NDArray[np.float64]
    """Their widths."""
    homophily: NDArray[np.float64]
    """Mean over the labelled vertices of the share of Q_ij^2 that leads to the vertex's own class."""
    spread: NDArray[np.float64]
    """Its standard error."""
    agreement: NDArray[np.float64]
    """Share of the labelled vertices whose own class has the largest mean Q_ij."""


def window_homophily(
    graph: GraphLike,
    labels: Any,
    windows: Sequence[tuple[float, float]] = _WINDOWS,
    *,
    mask: Any = None,
    probes: int = _core.PROBES,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> WindowHomophily:
    """What Gaussian windows (mu, sigma) on the spectrum see of the labels, estimated without eigenvectors.

    By default windows of width 0.1 from -0.9 to 1. ``mask`` names the vertices whose labels may be used (the training
    vertices, say). ``probes`` random vectors for each class: the error falls like 1 / sqrt(probes). The cost is that
    of about 5 / sigma products with the transition matrix for each probe, so this works on graphs of any size.

    >>> import networkx, qdc
    >>> club = networkx.karate_club_graph()
    >>> sides = [club.nodes[vertex]["club"] for vertex in club]
    >>> seen = qdc.window_homophily(club, sides, [(0.0, 0.1), (0.9, 0.1)])
    >>> bool(seen.agreement[0] < seen.agreement[1])
    True
    """
    read = as_graph(graph)
    chosen = [(float(mu), float(sigma)) for mu, sigma in windows]
    draws = (whole("probes", probes, at_least=1), whole("seed", seed))
    known = _known_labels(labels, mask, read.nodes)
    found = _core.window_homophily(read, known, chosen, *draws, call(threads, progress))
    names = ("mu", "sigma", "homophily", "spread", "agreement")
    return WindowHomophily(**{name: np.array([window[name] for window in found]) for name in names})


def suggest(
    graph: GraphLike,
    labels: Any,
    *,
    mask: Any = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """A place to start: mu and sigma of the window on the spectrum that tells the classes apart best.

    Uses the labels of the vertices in ``mask`` alone: ``qdc.suggest(data.edge_index, data.y, mask=data.train_mask)``.
    The report holds ``mu``, ``sigma``, ``agreement`` (the share of labelled vertices that lean to their own class),
    ``chance`` (what guessing the largest class gives), the ``reason`` in a sentence, and the ``windows`` looked at.

    >>> import qdc
    >>> dataset = qdc.datasets.load("csbm:n=300,homophily=0.1,seed=0")
    >>> found = qdc.suggest(dataset.graph, dataset.labels, mask=dataset.train_masks[0])
    >>> found["mu"] < 0, found["agreement"] > found["chance"]
    (True, True)
    """
    read = as_graph(graph)
    known = _known_labels(labels, mask, read.nodes)
    return _core.suggest(read, known, whole("seed", seed), call(threads, progress))


UNLABELLED = np.iinfo(np.uint32).max


def label_array(labels: Any) -> NDArray[np.uint32]:
    """Labels of any kind as numbers from 0; -1 among whole numbers from 0 stands for no label."""
    labels = as_numpy(labels, "labels")
    if labels.ndim != 1:
        raise ParameterError(f"labels of shape {labels.shape}", "give one label for each vertex, in one dimension")
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ParameterError("labels hold NaN", "leave unlabelled vertices out with mask=, or give them a class")
    known = np.ones(labels.shape, dtype=bool)
    if labels.dtype.kind == "i" and (labels == 0).any():
        known = labels != -1
    numbers = np.full(labels.shape, UNLABELLED, dtype=np.uint32)
    numbers[known] = np.unique(labels[known], return_inverse=True)[1]
    return numbers


def _known_labels(labels: Any, mask: Any, nodes: int) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Labels numbered from 0 among those in the mask, and the mask."""
    given = as_numpy(labels, "labels")
    known = np.ones(nodes, dtype=bool) if mask is None else as_numpy(mask, "mask")
    if given.shape != (nodes,) or known.shape != (nodes,):
        raise ParameterError(
            f"labels of shape {given.shape} and mask of shape {known.shape} for {nodes} vertices",
            "give one of each for every vertex; of masks with several splits, one column",
        )
    if known.dtype != bool:
        raise ParameterError(f"a mask of type {known.dtype}", "give booleans: mask != 0")
    numbers = np.zeros(nodes, dtype=np.uint32)
    numbers[known] = label_array(given[known])
    return numbers, known & (numbers != UNLABELLED)
