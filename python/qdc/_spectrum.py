"""The spectrum: eigenpairs computed once, kernels made from them many times."""

from __future__ import annotations

from typing import Any, Literal, overload

from scipy import sparse

from . import _core
from ._graph import Graph, GraphLike, as_graph, csr
from ._kernel import Normalize, Pairs, Progress, Report, Sign, Solver, kernel_options
from .filters import FilterLike, as_filter
from .sparsify import Epsilon, Sparsify


class Spectrum(_core.Spectrum):
    """Eigenpairs of the transition matrix L = D^-1/2 (A + I) D^-1/2 of a graph.

    ``pairs`` is ``"all"`` or the number of pairs nearest to ``around``; a group of equal eigenvalues is taken whole,
    so there may be more. Eigenvalues ascend in ``eigenvalues``; ``eigenvectors`` has one column for each. Both are
    read-only views, not copies. ``report`` says what the solver did.

    All pairs serve every filter and every mu; computing them once is what makes a search over mu and sigma cheap:

    >>> import networkx, qdc
    >>> spectrum = qdc.Spectrum(networkx.karate_club_graph())
    >>> spectrum
    Spectrum(nodes=34, pairs=34)
    >>> Q = spectrum.kernel(mu=0.3, sigma=0.1, sparsify=qdc.TopK(4))
    >>> Q.shape
    (34, 34)

    A solver that does not find every pair raises ``ConvergenceError``, whose ``partial`` is the spectrum it has.
    """

    def __new__(
        cls,
        graph: GraphLike,
        pairs: Pairs = "all",
        around: float = _core.DEFAULTS["mu"],
        *,
        solver: Solver = "auto",
        self_loop: float = _core.DEFAULTS["self_loop"],
        memory: float | None = None,
        seed: int = 0,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Spectrum:
        limit = None if memory is None else int(memory)
        call = {"threads": threads, "progress": progress}
        return super().__new__(cls, as_graph(graph), str(pairs), around, solver, self_loop, limit, seed, call)

    @property
    def graph(self) -> Graph:
        """The graph that the eigenpairs belong to."""
        return Graph(csr(self.arrays(), self.nodes))

    def __len__(self) -> int:
        return self.pairs

    def __repr__(self) -> str:
        return f"{type(self).__name__}(nodes={self.nodes}, pairs={self.pairs})"

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
            wanted, sparsify, sign, normalize, 1.0, "auto", _core.DEFAULTS["tolerance"], "f64", None
        )
        call = {"threads": threads, "progress": progress}
        arrays, report = _core.kernel_from(self, chosen._core, options, call)
        matrix = csr(arrays, self.nodes)
        return (matrix, report) if return_report else matrix
