"""Training networks over rewired graphs, as the command line does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, Literal

from . import _core
from ._call import Progress, Report, call, memory_limit, whole
from ._kernel import Device
from ._spectrum import Spectrum
from .datasets import Dataset, load
from .errors import ParameterError

Metric = Literal["accuracy", "f1", "auc"]
Sampler = Literal["tpe", "tpe-multivariate", "random"]


def train(
    dataset: Dataset | str,
    model: str = "gcn+qdc",
    *,
    splits: Iterable[int] | None = None,
    seed: int = 0,
    seeds: int = 1,
    ensemble: int | None = None,
    max_steps: int | None = None,
    batch_nodes: int | None = None,
    metric: Metric | None = None,
    memory: float | None = None,
    spectrum: Spectrum | None = None,
    device: Device = "auto",
    data_dir: str | PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **hyperparameters: Any,
) -> Report:
    """Trains a network over the splits of a dataset and returns the record of the run.

    ``model`` is ``mlp``, ``gcn``, ``gat``, one of the last two with ``+gdc``, ``+sdrf``, ``+bpdc``, ``+qdc`` or
    ``+multiscale``, or ``bank`` or ``window``. Hyper-parameters are keywords: ``layers hidden heads dropout
    learning_rate weight_decay mu sigma gamma alpha time epsilon top_k pairs ...``; those not given have the
    defaults of ``qdc train``. The best step by validation is kept, and scored on the test vertices. ``seeds``
    trains every split with that many seeds from ``seed`` on: means are over splits and seeds, the standard
    deviation over splits. ``ensemble=K`` trains K seeds and asks them together, the mean of their class
    probabilities: ``ensemble_test_mean`` and its kin stand beside the single networks' scores. ``metric``
    (``accuracy``, ``f1``, ``auc``; by default the dataset's usual one) stops the training and scores it.
    ``batch_nodes=N`` trains on N vertices at a time, drawn anew in every step, for graphs that do not fit in memory
    (on the CPU). ``memory`` bytes are the most that the whole run may take: fewer splits are trained at once, and
    what does not fit at all raises ``MemoryLimitError`` with the figure it needs. ``spectrum``, the eigenpairs of
    the dataset's graph, saves computing them again for every mu and sigma; those of another graph, or of another
    self-loop weight than the model's, raise ``ParameterError``. ``device`` is ``cpu``, ``cuda``, or ``auto``: a
    CUDA device where there is one, otherwise the CPU.

    The record is what ``qdc train --json`` prints: ``test_mean``, ``test_std``, ``validation_mean``, ``splits``,
    ``hyperparameters``, ``kernel``, ``seconds``, ... Accuracies are fractions.

    >>> import qdc
    >>> record = qdc.train("csbm:n=120,homophily=0.1,seed=0", "gcn+qdc", mu=-0.3, sigma=0.2, hidden=8, splits=[0, 1])
    >>> len(record["splits"]), 0.0 <= record["test_mean"] <= 1.0
    (2, True)
    """
    read = as_dataset(dataset, data_dir)
    chosen = None if splits is None else list(splits)
    pairs = None if spectrum is None else spectrum._core
    steps = None if max_steps is None else whole("max_steps", max_steps, at_least=1)
    count = whole("seeds", seeds, at_least=1)
    if ensemble is not None:
        members = whole("ensemble", ensemble, at_least=2)
        if count not in (1, members):
            raise ParameterError(f"ensemble = {members} asks {members} seeds, not seeds = {count}", "leave out seeds")
        count = members
    nodes = None if batch_nodes is None else whole("batch_nodes", batch_nodes, at_least=1)
    how = (whole("seed", seed), count, ensemble is not None, steps, nodes, metric, memory_limit(memory), pairs, device)
    return _core.train(read._core, model, as_text(hyperparameters), chosen, *how, call(threads, progress))


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
    threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Searches the hyper-parameters of a model for the best validation accuracy over the splits.

    ``space`` is ``paper`` (the published one), ``wide``, or a TOML file. The points of ``start`` are tried first, such
    as ``[{}, {"mu": 0.9}]``: the defaults, and the defaults but for mu. ``study`` names an SQLite file in Optuna's own
    schema (``optuna.load_study`` opens it; the same call resumes it), or, where the package was built with the feature
    ``postgres``, ``postgresql://user@host/database``; without one the search lives in memory. ``jobs`` trials run at
    once, by default as many as ``batch`` and ``threads`` allow; what is found depends on ``seed`` and ``batch`` only. A
    study is continued only as it was begun; ``study_name`` keeps several in one file. ``seeds`` scores the best trial
    with that many seeds in the end, ``finalists`` the N best of them, so that the mean validation over the seeds
    decides which is the best; ``ensemble=K`` asks the K best trials together (``ensemble_test_mean``,
    ``ensemble_trials``). ``budget`` is a number of seconds after which no trial begins. Ctrl-C leaves the finished
    trials in the study. ``batch_nodes``, ``metric``, ``memory`` and ``device`` as in ``train``; a trial that does not
    fit in memory is recorded as failed, and the search goes on.

    The report is what ``qdc tune --json`` prints: ``study``, ``storage``, ``trials``, ``best`` with ``validation``,
    ``test_mean``, ``test_std`` and ``parameters``, ``seconds``, ...
    """
    read = as_dataset(dataset, data_dir)
    searched = (trials, space, start, batch, seed, seeds, finalists, ensemble, sampler, prune, budget)
    settings = search_settings(*searched, splits, max_steps, batch_nodes, metric, memory, device)
    search = _core.Search(read._core, model, settings)
    at_once = None if jobs is None else whole("jobs", jobs, at_least=1)
    return search.run(None if study is None else str(study), study_name, at_once, None, call(threads, progress))


def search_settings(
    trials: int,
    space: str,
    start: Iterable[Mapping[str, Any]],
    batch: int,
    seed: int,
    seeds: int,
    finalists: int,
    ensemble: int | None,
    sampler: Sampler,
    prune: bool,
    budget: float | None,
    splits: Iterable[int] | None,
    max_steps: int | None,
    batch_nodes: int | None,
    metric: Metric | None,
    memory: float | None,
    device: Device,
) -> dict[str, Any]:
    """The keywords of a search as the core takes them."""
    if whole("finalists", finalists, at_least=1) > 1 and seeds == 1:
        raise ParameterError(f"finalists = {finalists} needs several seeds", "give seeds, such as seeds=5")
    return {
        "trials": whole("trials", trials, at_least=1),
        "space": (space, _core.space_file(space)),
        "start": [as_text(point) for point in start],
        "batch": whole("batch", batch, at_least=1),
        "seed": whole("seed", seed),
        "seeds": whole("seeds", seeds, at_least=1),
        "finalists": whole("finalists", finalists, at_least=1),
        "ensemble": 0 if ensemble is None else whole("ensemble", ensemble, at_least=2),
        "splits": None if splits is None else list(splits),
        "max_steps": None if max_steps is None else whole("max_steps", max_steps, at_least=1),
        "batch_nodes": None if batch_nodes is None else whole("batch_nodes", batch_nodes, at_least=1),
        "metric": metric,
        "memory": memory_limit(memory),
        "sampler": sampler,
        "prune": prune,
        "budget": budget,
        "device": device,
    }


def models() -> list[str]:
    """The names of the models."""
    return _core.models()


def as_dataset(dataset: Dataset | str, data_dir: str | PathLike[str] | None) -> Dataset:
    """The dataset of a name, or the one given."""
    return dataset if isinstance(dataset, Dataset) else load(dataset, data_dir)


def as_text(hyperparameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Hyper-parameters as ``--set`` takes them."""
    return [(name, str(value)) for name, value in hyperparameters.items()]
