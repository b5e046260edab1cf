"""The exceptions of qdc, one class per family.

Every message says what is wrong with the values that caused it; where something can be done about it, a second line
says what (also in the attribute ``hint``).

    >>> import numpy as np, qdc
    >>> qdc.kernel(np.array([[0.0, 1.0], [0.0, 0.0]]))
    Traceback (most recent call last):
        ...
    qdc.errors.GraphError: edge (0, 1) has weight 1 one way and 0 the other: the graph is directed
    hint: say how to make it undirected: qdc.Graph(A, symmetrize="or"), "max" or "mean"
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ConvergenceError",
    "DataError",
    "GraphError",
    "MemoryLimitError",
    "ParameterError",
    "QdcError",
]


class QdcError(Exception):
    """Anything that qdc reports; the base of the other classes."""

    hint: str | None

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message if self.hint is None else f"{message}\nhint: {self.hint}")
        self._parts = (message, self.hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts


class GraphError(QdcError, ValueError):
    """What was given cannot be read as an undirected graph with weights >= 0."""


class ParameterError(QdcError, ValueError):
    """A parameter is out of its range, unknown, or does not fit the others."""


class DataError(QdcError):
    """A dataset or a file is missing or damaged."""


class MemoryLimitError(QdcError, MemoryError):
    """The work would need more memory than it may take."""


class ConvergenceError(QdcError, ArithmeticError):
    """A solver stopped before it had everything; ``partial`` is what it has (a ``Spectrum``, or None)."""

    partial: Any = None
