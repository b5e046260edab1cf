"""The spectrum: eigenpairs computed once, kernels made from them many times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from scipy import sparse

from . import _core as core
from ._call import Progress, Report, call, memory_limit, whole
from ._graph import Graph, GraphLike, as_graph, csr
from ._kernel import Device, Normalize, Pairs, Sign, Solver, kernel_options
from .filters import FilterLike, as_filter
from .sparsify import Epsilon, Sparsify

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Spectrum:
    """Eigenpairs of the transition matrix L = D^-1/2 (A + I) D^-1/2 of a graph.

    ``pairs`` is ``"all"`` or the number of pairs nearest to ``around``; a group of equal eigenvalues is taken whole,
    so there may be more. ``solver``, ``self_loop``, ``memory``, ``threads`` and ``progress`` as in ``qdc.kernel``;
    ``seed`` fixes the starting vectors of the iterative solvers.

    All pairs serve every filter and every mu; computing them once is what makes a search over mu and sigma cheap:

    >>> import networkx, qdc
    >>> spectrum = qdc.Spectrum(networkx.karate_club_graph())
    >>> spectrum
    Spectrum(nodes=34, pairs=34)
    >>> Q = spectrum.kernel(mu=0.3, sigma=0.1, sparsify=qdc.TopK(4))
    >>> Q.shape
    (34, 34)
    >>> spectrum.eigenvalues[-1].round(12), spectrum.eigenvectors.shape
    (np.float64(1.0), (34, 34))

    A solver that does not find every pair raises ``ConvergenceError``, whose ``partial`` is the spectrum it has.
    """

    __slots__ = ("__weakref__", "_core")
    _core: core.Spectrum

    def __init__(
        self,
        graph: GraphLike,
        pairs: Pairs = "all",
        around: float = core.DEFAULTS["mu"],
        *,
        solver: Solver = "auto",
        self_loop: float = core.DEFAULTS["self_loop"],
        memory: float | None = None,
        seed: int = 0,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        how = (memory_limit(memory), whole("seed", seed), call(threads, progress))
        self._core = core.Spectrum(as_graph(graph), str(pairs), around, solver, self_loop, *how)

    @staticmethod
    def _of(found: core.Spectrum) -> Spectrum:
        """The spectrum over pairs that the core found; an interrupted solver hands over what it has this way."""
        spectrum = object.__new__(Spectrum)
        spectrum._core = found
        return spectrum

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """The eigenvalues, ascending; a read-only view."""
        return self._core.eigenvalues

    @property
    def eigenvectors(self) -> NDArray[np.float64]:
        """The eigenvectors, one column for each eigenvalue; a read-only view in Fortran order."""
        return self._core.eigenvectors

    @property
    def nodes(self) -> int:
        """Number of vertices."""
        return self._core.nodes

    @property
    def pairs(self) -> int:
        """Number of eigenpairs."""
        return self._core.pairs

    @property
    def is_complete(self) -> bool:
        """Whether every eigenpair of the graph is here."""
        return self._core.is_complete

    @property
    def report(self) -> Report:
        """What the solver did: ``solver``, ``residual_max``, ``orthogonality``, ``counted``, ..."""
        return self._core.report

    @property
    def graph(self) -> Graph:
        """The graph that the eigenpairs belong to."""
        return Graph(csr(self._core.arrays(), self.nodes))

    def nearest(self, mu: float, count: int) -> slice:
        """Where the ``count`` eigenvalues nearest to ``mu`` stand, groups of equal ones taken whole.

        >>> import networkx, qdc
        >>> spectrum = qdc.Spectrum(networkx.karate_club_graph())
        >>> spectrum.eigenvalues[spectrum.nearest(1.0, 2)].round(3)
        array([0.899, 1.   ])
        """
        return slice(*self._core.nearest(mu, count))

    def __len__(self) -> int:
        return self.pairs

    def __repr__(self) -> str:
        return f"Spectrum(nodes={self.nodes}, pairs={self.pairs})"

    @overload
    def kernel(
        self,
        filter: FilterLike = ...,
        *,
        mu: float | None = ...,
        sigma: float | None = ...,
        gamma: float | None = ...,
        alpha: float | None = ...,
        time: float | None = ...,
        pairs: Pairs | None = ...,
        sparsify: Sparsify = ...,
        sign: Sign = ...,
        normalize: Normalize = ...,
        device: Device = ...,
        threads: int | None = ...,
        progress: Progress | None = ...,
        return_report: Literal[False] = ...,
    ) -> sparse.csr_array: ...

    @overload
    def kernel(
        self,
        filter: FilterLike = ...,
        *,
        mu: float | None = ...,
        sigma: float | None = ...,
        gamma: float | None = ...,
        alpha: float | None = ...,
        time: float | None = ...,
        pairs: Pairs | None = ...,
        sparsify: Sparsify = ...,
        sign: Sign = ...,
        normalize: Normalize = ...,
        device: Device = ...,
        threads: int | None = ...,
        progress: Progress | None = ...,
        return_report: Literal[True],
    ) -> tuple[sparse.csr_array, Report]: ...

    def kernel(
        self,
        filter: FilterLike = "gaussian",
        *,
        mu: float | None = None,
        sigma: float | None = None,
        gamma: float | None = None,
        alpha: float | None = None,
        time: float | None = None,
        pairs: Pairs | None = None,
        sparsify: Sparsify = Epsilon(),
        sign: Sign = "positive",
        normalize: Normalize = "sym",
        device: Device = "auto",
        threads: int | None = None,
        progress: Progress | None = None,
        return_report: bool = False,
    ) -> sparse.csr_array | tuple[sparse.csr_array, Report]:
        """The kernel of a filter made from these eigenpairs; parameters as in ``qdc.kernel``.

        ``pairs`` is by default every pair held: all, or the window that was computed.
        """
        chosen = as_filter(filter, mu=mu, sigma=sigma, gamma=gamma, alpha=alpha, time=time)
        wanted: Any = pairs if pairs is not None else ("all" if self.is_complete else self.pairs)
        options = kernel_options(
            wanted, sparsify, sign, normalize, 1.0, "auto", core.DEFAULTS["tolerance"], "f64", None, None, device
        )
        arrays, report = core.kernel_from(self._core, chosen._core, options, call(threads, progress))
        matrix = csr(arrays, self.nodes)
        return (matrix, report) if return_report else matrix
