"""The keywords that every long call shares, checked before the work begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from .errors import ParameterError

Progress: TypeAlias = Callable[[str, int, int], object]
"""Called as ``progress(phase, done, total)``, from the thread that made the call, several times a second."""
Report: TypeAlias = "dict[str, Any]"


def call(threads: int | None, progress: Progress | None) -> dict[str, Any]:
    """How to run a call: on how many threads, and whom to tell."""
    if threads is not None:
        threads = whole("threads", threads, at_least=1)
    if progress is not None and not callable(progress):
        raise ParameterError(
            f"progress = {progress!r} cannot be called", "give a function of (phase, done, total), such as print"
        )
    return {"threads": threads, "progress": progress}


def whole(name: str, value: Any, at_least: int = 0) -> int:
    """A whole number in the range of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not at_least <= int(value) < 2**63:
        raise ParameterError(f"{name} = {value!r} is out of range: a whole number from {at_least}")
    return int(value)


def memory_limit(memory: Any) -> int | None:
    """A number of bytes."""
    if memory is None:
        return None
    if not isinstance(memory, (int, float, np.number)) or not 0 <= float(memory) < 2**63:
        raise ParameterError(f"memory = {memory!r} is out of range: bytes, such as 8e9", "leave it out for no limit")
    return int(float(memory))
