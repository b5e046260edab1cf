"""Kernels in row ranges, each a Ray task."""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any, Literal, overload

import ray
from scipy import sparse

from .. import _core
from .._call import Progress, Report, call
from .._graph import GraphLike, as_graph, csr
from .._kernel import Device, Normalize, Pairs, Precision, Sign, Solver, kernel_options
from ..errors import ParameterError
from ..filters import FilterLike, as_filter
from ..sparsify import Epsilon, Sparsify
from .bar import shown
from .places import connect, place, prepared, results

# The other routes compute eigenpairs or an elimination whole for any rows, so that ranges would repeat that work.
_BY_ROWS = ("chebyshev", "local")
_ON_GPU = ("chebyshev", "dense", "lobpcg", "window")
# Operations of a task: fewer are not worth the trip; more would be much to lose with a worker (a minute or so of a
# thread, and about that of a GPU).
_FEWEST = 1e9
_MOST = {"cpu": 2e11, "cuda": 4e13}
_ROWS = 64  # whole panels of columns


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
    threads: int = ...,
    progress: Progress | bool | None = ...,
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
    threads: int = ...,
    progress: Progress | bool | None = ...,
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
    threads: int = 1,
    progress: Progress | bool | None = None,
    return_report: bool = False,
) -> sparse.csr_array | tuple[sparse.csr_array, Report]:
    """The kernel of ``qdc.kernel``, byte for byte, made in row ranges by the workers of a Ray cluster.

    The graph goes into the object store once. A first task chooses the route and counts what it takes; by that count
    rows are divided into ranges, each a task: four for every worker where there is enough to do, and none of more than
    about a minute. A range whose worker or node is lost is made again (five times at most). The ranges are joined here
    as ``qdc merge`` joins them. Routes that compute eigenpairs or an elimination (``pairs=512``, PageRank on graphs
    like trees) cannot be divided and are one task.

    Parameters as in ``qdc.kernel``, but for these:

    ``filter``
        no function of Python's, which cannot be known to be the same everywhere; ``qdc.Filter.sum`` adds named ones.
    ``memory``
        bytes that one task may take; Ray begins no more tasks on a node than fit.
    ``device``
        with ``"auto"`` tasks of routes that gain from a GPU reserve one where the cluster has some that work, and
        compute on it as ``device="cuda"`` does in one process; if qdc cannot use them, a warning says why, and CPUs do
        the work. With ``"cuda"`` a cluster without a GPU, or with one that does not work, is an error.
    ``threads``
        threads of each task, for which it reserves as many CPUs.
    ``progress``
        a bar on standard error, if that is a terminal; True for a bar in any case, False for none, or a function
        called as (phase, done, total).

    >>> import networkx, qdc, ray
    >>> _ = ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
    >>> graph = networkx.barabasi_albert_graph(500, 4, seed=0)
    >>> Q, report = qdc.ray.kernel(graph, "heat", time=2.0, sparsify=qdc.TopK(8), return_report=True)
    >>> Q.shape, report["solver"]
    ((500, 500), 'chebyshev')
    >>> ray.shutdown()
    """
    chosen = as_filter(filter, mu=mu, sigma=sigma, gamma=gamma, alpha=alpha, time=time)
    if chosen._function is not None:
        raise ParameterError(
            f"the filter {chosen.name!r} is a Python function, which cannot be known to be the same on every node",
            'name a filter ("gaussian", "band", "ppr", "heat") or add some with qdc.Filter.sum; or use qdc.kernel',
        )
    options = kernel_options(
        pairs, sparsify, sign, normalize, self_loop, solver, tolerance, precision, accuracy, memory, device
    )
    read = as_graph(graph)
    connect()
    with shown(progress) as tell:
        given = [ray.put((read, chosen, options))]
        here = place(device, threads, memory)
        first = ray.remote(_plan).options(**here.options, name="qdc plan").remote(given, solver, here.device, threads)
        ((_, plan),) = results([first], ["the plan"])
        if plan["route"] not in _ON_GPU:
            here = place("cpu", threads, memory)
        route = plan["route"] if plan["route"] in _BY_ROWS else solver
        ranges = row_ranges(read.nodes, plan, here.count, here.device)
        names = [f"rows {start}:{stop}" for start, stop in ranges]
        make = ray.remote(_rows)
        tasks = [
            make.options(**here.options, name=f"qdc {name}").remote(given, route, here.device, threads, *rows)
            for name, rows in zip(names, ranges, strict=True)
        ]
        shards: list[Any] = [None] * len(tasks)
        done = 0
        with closing(results(tasks, names)) as ended:
            for at, shard in ended:
                shards[at] = shard
                done += ranges[at][1] - ranges[at][0]
                if tell is not None:
                    tell("rows", done, read.nodes)
        arrays, report = _core.merge(shards, call(None, None))
    if route != solver:
        report["reason"] = plan["reason"]  # tasks were asked for the route, which auto had chosen
    matrix = csr(arrays, read.nodes)
    return (matrix, report) if return_report else matrix


def row_ranges(nodes: int, plan: Report, workers: int, device: Device) -> list[tuple[int, int]]:
    """Every row once, in ranges of equal size but the last.

    >>> row_ranges(1000, {"route": "chebyshev", "flops": 8e9}, workers=1, device="cpu")
    [(0, 256), (256, 512), (512, 768), (768, 1000)]
    >>> row_ranges(1000, {"route": "chebyshev", "flops": 8e8}, workers=9, device="cpu")
    [(0, 1000)]
    >>> len(row_ranges(10**6, {"route": "local", "flops": 2e13}, workers=2, device="cpu"))
    100
    >>> row_ranges(1000, {"route": "dense", "flops": 1e15}, workers=9, device="cpu")
    [(0, 1000)]
    """
    if plan["route"] not in _BY_ROWS:
        return [(0, nodes)]
    ranges = max(min(4 * workers, plan["flops"] / _FEWEST), plan["flops"] / _MOST[device], 1)
    each = _ROWS * math.ceil(nodes / ranges / _ROWS)
    return [(start, min(start + each, nodes)) for start in range(0, nodes, each)]


def _plan(given: list[Any], solver: Solver, device: Device, threads: int) -> Report:
    """The plan of the kernel whose parts the object store has."""
    return _job(given, solver, device, threads).plan


def _rows(given: list[Any], solver: Solver, device: Device, threads: int, start: int, stop: int) -> Any:
    """Rows of the kernel whose parts the object store has, and their manifest."""
    return _job(given, solver, device, threads).rows(start, stop, call(threads, None))


def _job(given: list[Any], solver: Solver, device: Device, threads: int) -> _core.Job:
    """Prepared by the first task of this process, and kept for those that follow."""

    def prepare() -> _core.Job:
        graph, filter, options = ray.get(given[0])
        how = {**options, "solver": solver, "device": device}
        return _core.Job(graph, filter._core, how, call(threads, None))

    return prepared((given[0].hex(), device), prepare, lambda job: solver in ("auto", job.plan["route"]))
