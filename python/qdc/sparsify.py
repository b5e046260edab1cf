"""What is kept of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from . import _core
from .errors import ParameterError


@dataclass(frozen=True)
class Epsilon:
    """Keeps the entries Q_ij >= epsilon (with ``sign="absolute"``: abs(Q_ij) >= epsilon)."""

    epsilon: float = _core.DEFAULTS["epsilon"]

    def __post_init__(self) -> None:
        _core.check_sparsify("epsilon", self.epsilon)


@dataclass(frozen=True)
class TopK:
    """Keeps the k largest positive entries of each row, then the union with the transpose.

    Values closer than 1e-9 count as equal, and of equal ones the lower columns stay; so the result does not depend
    on how it was computed.
    """

    k: int

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or int(self.k) != self.k or self.k < 1:
            raise ParameterError(f"k = {self.k} is out of range: a whole number from 1")
        _core.check_sparsify("top_k", self.k)


Sparsify: TypeAlias = "Epsilon | TopK | None"
"""``Epsilon(e)``, ``TopK(k)``, or None, which keeps all."""


def rule(sparsify: Sparsify) -> tuple[str, float]:
    """The rule by name and value, as the core takes it."""
    if isinstance(sparsify, Epsilon):
        return "epsilon", sparsify.epsilon
    if isinstance(sparsify, TopK):
        return "top_k", float(sparsify.k)
    if sparsify is None:
        return "none", 0.0
    raise ParameterError(f"sparsify = {sparsify!r} is no rule", "give qdc.Epsilon(1e-4), qdc.TopK(64) or None")
