"""Where tasks run, what becomes of them, and what a worker keeps between two of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import ray
from ray.exceptions import OutOfMemoryError, RayError, RayTaskError

from .._call import memory_limit, whole
from .._kernel import Device, kernel
from ..errors import MemoryLimitError, ParameterError, QdcError

RETRIES = 5
"""How often a task is run again whose worker or node was lost."""
LOOK = 0.1
"""Seconds between two looks for Ctrl-C."""

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Place:
    """What a task reserves, and how many fit on the nodes there are."""

    options: dict[str, Any]
    """For ``task.options``."""
    device: Device
    """The ``device`` that the task computes on."""
    count: int
    """Tasks at once."""


def connect() -> None:
    """Joins a cluster, or starts one on this machine, unless that was done before."""
    if not ray.is_initialized():
        ray.init()


def place(device: Device, threads: int, memory: float | None) -> Place:
    """A CPU for each thread, the memory allowed, and a GPU where ``device`` asks for one.

    With ``"auto"`` that is where the cluster has some, and qdc can compute on the first that Ray gives; if it cannot,
    a warning says why, and the CPUs do the work.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise ParameterError(f"device: {device!r} is none of auto, cpu and cuda")
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    has_gpus = any(node.get("GPU", 0) >= 1 for node in nodes)
    if device == "cuda" and not has_gpus:
        raise ParameterError("no node of the Ray cluster has a GPU", "use device='cpu', or device='auto'")
    on_gpu = device != "cpu" and has_gpus
    if on_gpu and device == "auto" and (problem := gpu_problem()) is not None:
        warnings.warn(f"the GPUs of the Ray cluster are not used: {problem}", RuntimeWarning, stacklevel=3)
        on_gpu = False
    bytes_allowed = memory_limit(memory)
    wanted = {"CPU": whole("threads", threads, at_least=1), "GPU": int(on_gpu), "memory": bytes_allowed or 0}
    count = sum(_fitting(node, wanted) for node in nodes)
    if count == 0:
        names = {"CPU": "CPUs (threads)", "GPU": "GPUs", "memory": "bytes of memory"}
        asked = ", ".join(f"{amount} {names[name]}" for name, amount in wanted.items() if amount)
        largest = ", ".join(f"{max(node.get(name, 0) for node in nodes):.0f} {names[name]}" for name in wanted)
        raise ParameterError(
            f"no node of the Ray cluster has {asked}; the most that nodes have is {largest}",
            "lower threads or memory, or start a node that has them",
        )
    options = {"num_cpus": wanted["CPU"], "num_gpus": wanted["GPU"], "max_retries": RETRIES}
    if bytes_allowed:
        options["memory"] = bytes_allowed
    return Place(options, "cuda" if on_gpu else "cpu", count)


def gpu_problem() -> str | None:
    """Why a task that reserves a GPU cannot compute on it; None if it can."""
    task = ray.remote(_problem_here).options(num_gpus=1, max_retries=RETRIES, name="qdc gpu").remote()
    try:
        ((_, problem),) = results([task], ["trying a GPU"])
    except QdcError as error:
        return str(error)
    return None if problem is None else str(problem)


def _problem_here() -> str | None:
    """Why this process cannot make a kernel on its GPU."""
    try:
        kernel(np.array([[0.0, 1.0], [1.0, 0.0]]), device="cuda")
    except QdcError as error:
        return str(error).splitlines()[0]  # the rest advises device="auto"
    return None


def _fitting(node: dict[str, float], wanted: dict[str, int]) -> int:
    return int(min(node.get(name, 0) // amount for name, amount in wanted.items() if amount))


def results(tasks: Sequence[Any], what: Sequence[str]) -> Generator[tuple[int, Any], None, None]:
    """(number, result) of each task as it ends. Tasks that have not ended when this is closed are cancelled."""
    waiting = {task: at for at, task in enumerate(tasks)}
    try:
        while waiting:
            done, _ = ray.wait(list(waiting), timeout=LOOK)
            for task in done:
                at = waiting.pop(task)
                yield at, result(task, what[at])
    finally:
        for task in waiting:
            ray.cancel(task)


def result(task: Any, what: str) -> Any:
    """The result of a task that has ended, or the error that it raised, in the words of qdc."""
    try:
        return ray.get(task)
    except RayTaskError as error:
        raise error.cause from None
    except OutOfMemoryError as error:
        raise MemoryLimitError(
            f"{what}: the node had no memory left for its worker",
            "memory=BYTES lets Ray count what each task takes and begin fewer at once",
        ) from error
    except RayError as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise QdcError(
            f"{what}: lost {RETRIES + 1} times with its worker ({reason})",
            "the logs of the Ray nodes say why; the same call begins again",
        ) from error


_prepared: dict[Any, Any] = {}


def prepared(key: Any, make: Callable[[], Kept], fits: Callable[[Kept], bool] = lambda _: True) -> Kept:
    """What the last task in this process prepared under the key, if it fits; else what ``make`` prepares."""
    kept: Kept | None = _prepared.get(key)
    if kept is None or not fits(kept):
        _prepared.clear()
        kept = _prepared[key] = make()
    return kept
