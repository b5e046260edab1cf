"""What flows on a graph: Ricci flow that rewires it, and the dynamics behind the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
from scipy import sparse

from . import _core
from ._call import Progress, Report, call, whole
from ._graph import GraphLike, as_graph, csr
from .errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Variant: TypeAlias = Literal["formula", "code"]
Equation: TypeAlias = Literal["heat", "schrodinger"]


@overload
def sdrf(
    graph: GraphLike,
    iterations: int = ...,
    *,
    tau: float = ...,
    removal_bound: float = ...,
    variant: Variant = ...,
    seed: int = ...,
    threads: int | None = ...,
    progress: Progress | None = ...,
    return_report: Literal[False] = ...,
) -> sparse.csr_array: ...


@overload
def sdrf(
    graph: GraphLike,
    iterations: int = ...,
    *,
    tau: float = ...,
    removal_bound: float = ...,
    variant: Variant = ...,
    seed: int = ...,
    threads: int | None = ...,
    progress: Progress | None = ...,
    return_report: Literal[True],
) -> tuple[sparse.csr_array, Report]: ...


def sdrf(
    graph: GraphLike,
    iterations: int = _core.SDRF_ITERATIONS,
    *,
    tau: float = _core.DEFAULTS["tau"],
    removal_bound: float = _core.DEFAULTS["removal_bound"],
    variant: Variant = "formula",
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
    return_report: bool = False,
) -> sparse.csr_array | tuple[sparse.csr_array, Report]:
    """The adjacency matrix after stochastic discrete Ricci flow (Topping et al., 2022).

    Each iteration adds the edge that most raises the curvature of the edge where it is least, and removes the edge
    of greatest curvature where that exceeds ``removal_bound``. A finite ``tau`` draws the addition with probability
    proportional to exp(tau gain) (from ``seed``); infinite, the best is taken. ``variant="formula"`` is the balanced
    Forman curvature as published, ``"code"`` what the authors' program computes.

    >>> import networkx, qdc
    >>> before = networkx.barbell_graph(5, 1)
    >>> after = qdc.sdrf(before, iterations=3, removal_bound=float("inf"))
    >>> after.nnz // 2 - before.number_of_edges()
    3
    """
    read = as_graph(graph)
    steps, draws = whole("iterations", iterations), whole("seed", seed)
    arrays, report = _core.sdrf(read, steps, tau, removal_bound, variant, draws, call(threads, progress))
    matrix = csr(arrays, read.nodes)
    return (matrix, report) if return_report else matrix


def dynamics(
    graph: GraphLike,
    equation: Equation = "schrodinger",
    *,
    start: int | Any = 0,
    times: Sequence[float] | NDArray[Any] = (0.0, 1.0, 5.0, 50.0),
    potential: Any = None,
    self_loop: float = _core.DEFAULTS["self_loop"],
    threads: int | None = None,
    progress: Progress | None = None,
) -> NDArray[Any]:
    """The state of a diffusing quantity at several times: an array of shape (times, vertices).

    ``"heat"`` gives exp(-t (I - L)) f, real; ``"schrodinger"`` gives exp(-i t (I - L + V)) psi, complex, whose
    probabilities are ``abs(psi)**2``. ``start`` is a vertex, or a state with one number for each vertex;
    ``potential`` is V, one number for each vertex.

    >>> import networkx, qdc
    >>> psi = qdc.dynamics(networkx.barbell_graph(5, 1), start=2, times=[0, 10])
    >>> (abs(psi) ** 2).sum(axis=1).round(12)
    array([1., 1.])
    """
    read = as_graph(graph)
    moments = np.ascontiguousarray(times, dtype=np.float64)
    field = None if potential is None else np.ascontiguousarray(potential, dtype=np.float64)
    how = call(threads, progress)

    def evolve(state: NDArray[np.float64]) -> NDArray[Any]:
        real, imaginary = _core.dynamics(read, equation, state, moments, field, self_loop, how)
        return real if imaginary is None else real + 1j * imaginary

    if np.ndim(start) == 0:
        if not 0 <= start < read.nodes:
            raise ParameterError(f"start = {start} is no vertex of 0..{read.nodes}")
        state = np.zeros(read.nodes)
        state[start] = 1.0
        return evolve(state)
    state = np.asarray(start)
    if np.iscomplexobj(state):
        return evolve(np.ascontiguousarray(state.real)) + 1j * evolve(np.ascontiguousarray(state.imag))
    return evolve(np.ascontiguousarray(state, dtype=np.float64))
