"""A search whose trials are Ray tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any

import ray

from .. import _core
from .._call import Progress, Report, call, whole
from .._kernel import Device
from .._training import Metric, Sampler, as_dataset, search_settings
from ..datasets import Dataset
from ..errors import QdcError
from .bar import shown
from .places import LOOK, connect, place, prepared, result


def tune(
    dataset: Dataset | str,
    model: str = "gcn+qdc",
    *,
    trials: int = 250,
    space: str = "paper",
    start: Iterable[Mapping[str, Any]] = (),
    study: str | PathLike[str] | None = None,
    jobs: int | None = None,
    batch: int = 4,
    seed: int = 0,
    seeds: int = 1,
    finalists: int = 1,
    ensemble: int | None = None,
    splits: Iterable[int] | None = None,
    max_steps: int | None = None,
    batch_nodes: int | None = None,
    metric: Metric | None = None,
    memory: float | None = None,
    study_name: str | None = None,
    sampler: Sampler = "tpe",
    prune: bool = False,
    budget: float | None = None,
    device: Device = "auto",
    data_dir: str | PathLike[str] | None = None,
    threads: int = 1,
    progress: Progress | bool | None = None,
) -> Report:
    """The search of ``qdc.tune``, trial by trial, with the trials trained by the workers of a Ray cluster.

    The calling process asks for points and writes the study, a file or ``postgresql://user@host/database``; workers
    need to see neither. The dataset goes into the object store once. A trial whose worker or node is lost is trained
    again with the same parameters under the same number (five times at most), so that none is lost or doubled. If the
    calling process is killed, the same call resumes the study. Several such calls, and ``qdc tune`` processes, may
    work on one study.

    Parameters as in ``qdc.tune``, but for these:

    ``jobs``
        trials at once, by default as many as ``batch`` and the cluster allow. What is found depends on ``seed`` and
        ``batch`` only; more than ``batch`` trials are never under way, so a large cluster wants a large batch.
    ``memory``
        bytes that one trial may take; Ray begins no more trials on a node than fit.
    ``device``
        with ``"auto"`` every trial reserves a GPU where the cluster has some that work, and is trained on it; if qdc
        cannot use them, a warning says why, and CPUs train. With ``"cuda"`` a cluster without a GPU, or with one that
        does not work, is an error.
    ``threads``
        threads of each trial, for which it reserves as many CPUs.
    ``prune``
        a trial given up counts as such, but is known to be hopeless only when its worker is done.
    ``seeds``, ``finalists``, ``ensemble``
        are trained in the calling process in the end.
    ``progress``
        a bar on standard error, if that is a terminal; True for a bar in any case, False for none, or a function
        called as (phase, done, total).

    >>> import qdc, ray
    >>> _ = ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
    >>> report = qdc.ray.tune("csbm:n=60,homophily=0.2,seed=0", "gcn+qdc", trials=2, max_steps=5, splits=[0])
    >>> report["trials"], sorted(report["best"]["parameters"])[:3]
    (2, ['dropout', 'epsilon', 'hidden'])
    >>> ray.shutdown()
    """
    read = as_dataset(dataset, data_dir)
    searched = (trials, space, start, batch, seed, seeds, finalists, ensemble, sampler, prune, budget)
    settings = search_settings(*searched, splits, max_steps, batch_nodes, metric, memory, device)
    connect()
    here = place(device, threads, memory)
    scored_here = settings["seeds"] > 1 or settings["ensemble"] > 1
    search = _core.Search(read._core, model, {**settings, "device": device if scored_here else "cpu"})
    at_once = min(here.count, settings["batch"]) if jobs is None else whole("jobs", jobs, at_least=1)
    given = [ray.put((read, model, settings))]
    # A trial raises only when its device is lost; another worker may have one that works.
    task = ray.remote(_trial).options(**here.options, retry_exceptions=[QdcError], name="qdc trial")

    def train(point: str, stopped: Callable[[], bool]) -> str | None:
        running = task.remote(given, point, here.device, threads)
        while not ray.wait([running], timeout=LOOK)[0]:
            if stopped():
                ray.cancel(running)
                return None
        trained: str = result(running, f"the trial at {point}")
        return trained

    with shown(progress) as tell:
        return search.run(None if study is None else str(study), study_name, at_once, train, call(None, tell))


def _trial(given: list[Any], point: str, device: Device, threads: int) -> str:
    """The record of the trial at a point of the search whose parts the object store has."""

    def prepare() -> _core.Search:
        dataset, model, settings = ray.get(given[0])
        return _core.Search(dataset._core, model, {**settings, "device": device})

    return prepared((given[0].hex(), device), prepare).trial(point, call(threads, None))
