"""A bar on standard error, for calls that take long and run elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from .._call import Progress
from ..errors import ParameterError

_WIDTH = 30


class Bar:
    """One line: the phase, how much of it is done, and about how long the rest takes.

    >>> import io
    >>> out, now = io.StringIO(), iter([0.0, 60.0])
    >>> bar = Bar(out, clock=lambda: next(now))
    >>> bar("rows", 0, 4); bar("rows", 1, 4)
    >>> out.getvalue().split("\\r")[-1].rstrip()
    'rows [#######.......................] 1/4, 3 min left'
    """

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out, clock
        self._phase: tuple[str, int] | None = None
        self._begun = (0.0, 0)
        self._width = 0

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = self._clock()
        if self._phase != (phase, total):
            self._phase, self._begun = (phase, total), (now, done)
        since, before = self._begun
        left = f", {_time((now - since) * (total - done) / (done - before))} left" if total > done > before else ""
        full = _WIDTH * min(done, total) // max(total, 1)
        line = f"{phase} [{'#' * full}{'.' * (_WIDTH - full)}] {done}/{total}{left}"
        self._out.write("\r" + line.ljust(self._width))
        self._out.flush()
        self._width = len(line)

    def close(self) -> None:
        """Leaves the line."""
        if self._phase is not None:
            self._out.write("\n")
            self._out.flush()


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def shown(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Whom to tell: the function given; a bar where there is a terminal or True was said; nobody for False."""
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    if callable(progress):
        yield progress
        return
    if progress not in (None, True):
        unusable: Any = progress
        raise ParameterError(
            f"progress = {unusable!r} is neither a function nor a truth value",
            "give a function of (phase, done, total), or False for silence",
        )
    bar = Bar(sys.stderr)
    try:
        yield bar
    finally:
        bar.close()
