"""The kernel: a filter of the transition matrix, sparsified and normalised."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, overload

from scipy import sparse

from . import _core
from ._call import Progress, Report, call, memory_limit
from ._graph import Graph, GraphLike, as_graph, csr
from .errors import ParameterError
from .filters import Filter, FilterLike, as_filter
from .sparsify import Epsilon, Sparsify, TopK, rule

Pairs: TypeAlias = "int | Literal['all']"
Solver: TypeAlias = Literal["auto", "dense", "lobpcg", "window", "chebyshev", "elimination", "local"]
Sign: TypeAlias = Literal["positive", "absolute"]
Normalize: TypeAlias = "Literal['sym', 'row', 'col', 'none'] | None"
Precision: TypeAlias = Literal["f64", "f32"]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]


@overload
def kernel(
    graph: GraphLike,
    filter: FilterLike = ...,
    *,
    mu: float | None = ...,
    sigma: float | None = ...,
    gamma: float | None = ...,
    alpha: float | None = ...,
    time: float | None = ...,
    pairs: Pairs = ...,
    sparsify: Sparsify = ...,
    sign: Sign = ...,
    normalize: Normalize = ...,
    self_loop: float = ...,
    solver: Solver = ...,
    tolerance: float = ...,
    precision: Precision = ...,
    accuracy: float | None = ...,
    memory: float | None = ...,
    device: Device = ...,
    threads: int | None = ...,
    progress: Progress | None = ...,
    return_report: Literal[False] = ...,
) -> sparse.csr_array: ...


@overload
def kernel(
    graph: GraphLike,
    filter: FilterLike = ...,
    *,
    mu: float | None = ...,
    sigma: float | None = ...,
    gamma: float | None = ...,
    alpha: float | None = ...,
    time: float | None = ...,
    pairs: Pairs = ...,
    sparsify: Sparsify = ...,
    sign: Sign = ...,
    normalize: Normalize = ...,
    self_loop: float = ...,
    solver: Solver = ...,
    tolerance: float = ...,
    precision: Precision = ...,
    accuracy: float | None = ...,
    memory: float | None = ...,
    device: Device = ...,
    threads: int | None = ...,
    progress: Progress | None = ...,
    return_report: Literal[True],
) -> tuple[sparse.csr_array, Report]: ...


def kernel(
    graph: GraphLike,
    filter: FilterLike = "gaussian",
    *,
    mu: float | None = None,
    sigma: float | None = None,
    gamma: float | None = None,
    alpha: float | None = None,
    time: float | None = None,
    pairs: Pairs = "all",
    sparsify: Sparsify = Epsilon(),
    sign: Sign = "positive",
    normalize: Normalize = "sym",
    self_loop: float = _core.DEFAULTS["self_loop"],
    solver: Solver = "auto",
    tolerance: float = _core.DEFAULTS["tolerance"],
    precision: Precision = "f64",
    accuracy: float | None = None,
    memory: float | None = None,
    device: Device = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    return_report: bool = False,
) -> sparse.csr_array | tuple[sparse.csr_array, Report]:
    """The kernel Q = sum over pairs of P(E_a) phi_a phi_a^T of a graph, sparsified and normalised.

    E_a, phi_a are the eigenpairs of L = D^-1/2 (A + I) D^-1/2, which need not be computed: with all pairs the
    kernel is a polynomial in L, made block by block, so that N x N numbers are never stored.

    ``graph``
        whatever ``qdc.Graph`` takes: a SciPy sparse array, edges in NumPy or torch, a NetworkX graph, ...
    ``filter``
        P: ``"gaussian"`` (mu 0.5, sigma 0.3), ``"band"`` (mu 0.5, gamma 0.3), ``"ppr"`` (alpha 0.15), ``"heat"``
        (time 3), a ``qdc.Filter``, or any function of a float. Giving a parameter that the filter does not take is
        an error.
    ``pairs``
        ``"all"`` (the exact kernel) or the number of eigenpairs nearest to mu (the published method takes 512): two
        different kernels. Groups of equal eigenvalues are taken whole.
    ``sparsify``
        ``Epsilon(1e-4)``, ``TopK(k)``, or None, which keeps all.
    ``sign``
        ``"positive"`` drops negative entries; ``"absolute"`` compares magnitudes and keeps signs.
    ``normalize``
        ``"sym"`` D^-1/2 Q D^-1/2 with D the row sums of what was kept, ``"row"`` D^-1 Q, ``"col"`` Q D^-1, or None.
    ``self_loop``
        the weight w of the loops in A + w I.
    ``solver``, ``tolerance``, ``precision``
        how to compute it, the error of an entry to aim at, and the arithmetic of the polynomial route.
    ``accuracy``
        the largest error that entries may have, in the tolerance's place. Where it is given, ``solver="auto"`` may
        take the route ``"local"``, which makes the large entries of graphs with millions of vertices; the report
        says what error was measured.
    ``memory``
        bytes that the graph, its transition matrix and the work on the kernel may take together; more is a
        ``MemoryLimitError``.
    ``device``
        ``"cuda"`` makes the columns of a polynomial, or those of eigenpairs, on a CUDA device, ``"auto"`` where there
        is one and it gains.
    ``threads``, ``progress``
        worker threads (the result does not depend on them), and a function called as (phase, done, total).
    ``return_report``
        return (Q, report), where the report says what was really done: route, degree, error bound, empty rows, ...

    >>> import networkx, qdc
    >>> graph = networkx.karate_club_graph()
    >>> Q, report = qdc.kernel(graph, mu=0.3, sigma=0.1, sparsify=qdc.TopK(4), return_report=True)
    >>> Q.shape, report["empty_rows"], report["error_bound"] < 1e-9
    ((34, 34), 0, True)
    """
    options = kernel_options(
        pairs, sparsify, sign, normalize, self_loop, solver, tolerance, precision, accuracy, memory, device
    )
    chosen = as_filter(filter, mu=mu, sigma=sigma, gamma=gamma, alpha=alpha, time=time)
    read, how = as_graph(graph), call(threads, progress)
    arrays, report = _core.Job(read, chosen._core, options, how).build(how)
    matrix = csr(arrays, read.nodes)
    return (matrix, report) if return_report else matrix


def build_rows(
    graph: GraphLike,
    rows: slice | range | tuple[int, int],
    filter: FilterLike = "gaussian",
    *,
    mu: float | None = None,
    sigma: float | None = None,
    gamma: float | None = None,
    alpha: float | None = None,
    time: float | None = None,
    pairs: Pairs = "all",
    sparsify: Sparsify = Epsilon(),
    sign: Sign = "positive",
    self_loop: float = _core.DEFAULTS["self_loop"],
    solver: Solver = "auto",
    tolerance: float = _core.DEFAULTS["tolerance"],
    precision: Precision = "f64",
    accuracy: float | None = None,
    memory: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> sparse.csr_array:
    """The rows ``start:stop`` of a kernel, as each keeps them by its own values, before union and normalisation.

    For graphs too large for one call: ``scipy.sparse.vstack`` joins the pieces. ``qdc.ray.kernel`` makes a whole kernel
    on several machines. Parameters as in ``qdc.kernel``.

    >>> import networkx, qdc
    >>> qdc.build_rows(networkx.karate_club_graph(), slice(0, 5), mu=0.3, sigma=0.1, sparsify=qdc.TopK(4)).shape
    (5, 34)
    """
    options = kernel_options(pairs, sparsify, sign, "none", self_loop, solver, tolerance, precision, accuracy, memory)
    chosen = as_filter(filter, mu=mu, sigma=sigma, gamma=gamma, alpha=alpha, time=time)
    read, how = as_graph(graph), call(threads, progress)
    start, stop = _row_range(rows, read.nodes)
    arrays, _ = _core.Job(read, chosen._core, options, how).rows(start, stop, how)
    return csr(arrays, read.nodes)


def resident_kernel(
    graph: Graph, filter: Filter, *, sparsify: Sparsify, threads: int | None, **options: Any
) -> _core.Resident | None:
    """The kernel as a CUDA device makes it and keeps it; None where that is not possible.

    It is possible under a threshold, by the routes ``chebyshev`` and eigenpairs, where all columns fit on the device.
    ``options`` are those of ``kernel_options``.
    """
    if isinstance(sparsify, TopK):
        return None
    how = call(threads, None)
    asked = kernel_options(sparsify=sparsify, memory=None, resident=True, **options)
    return _core.Job(graph, filter._core, asked, how).build_resident(how)


def kernel_options(
    pairs: Pairs,
    sparsify: Sparsify,
    sign: Sign,
    normalize: Normalize,
    self_loop: float,
    solver: Solver,
    tolerance: float,
    precision: Precision,
    accuracy: float | None,
    memory: float | None,
    device: Device = "cpu",
    resident: bool = False,
) -> dict[str, Any]:
    """The keywords of a kernel as the core takes them; ``resident``: its graph lies on a CUDA device."""
    return {
        "pairs": str(pairs),
        "sparsify": rule(sparsify),
        "sign": sign,
        "normalize": normalize or "none",
        "self_loop": float(self_loop),
        "solver": solver,
        "tolerance": float(tolerance),
        "precision": precision,
        "accuracy": None if accuracy is None else float(accuracy),
        "memory": memory_limit(memory),
        "device": device,
        "resident": resident,
    }


def _row_range(rows: slice | range | tuple[int, int], nodes: int) -> tuple[int, int]:
    if isinstance(rows, slice):
        start, stop, step = rows.indices(nodes)
    elif isinstance(rows, range):
        start, stop, step = rows.start, rows.stop, rows.step
    else:
        (start, stop), step = rows, 1
    if step != 1 or start < 0 or stop < start:
        raise ParameterError(f"rows = {rows} is no range of rows", "give slice(start, stop) with step 1")
    return start, stop
