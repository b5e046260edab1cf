"""Filters: functions of the eigenvalue. A filter of the transition matrix L is a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import numpy as np

from . import _core as core
from .errors import ParameterError

FilterName: TypeAlias = Literal["gaussian", "band", "ppr", "heat"]
FilterLike: TypeAlias = "FilterName | Filter | Callable[[float], float]"

_PARAMETERS: dict[str, tuple[str, ...]] = {
    "gaussian": ("mu", "sigma"),
    "band": ("mu", "gamma"),
    "ppr": ("alpha",),
    "heat": ("time",),
}


class Filter:
    """A function P(E) of the eigenvalue E in [-1, 1], with checked parameters.

    ========================== ============================================================== =================
    made by                    P(E)                                                           known as
    ========================== ============================================================== =================
    ``Filter.gaussian``        exp(-(E - mu)^2 / 2 sigma^2)                                   QDC
    ``Filter.band``            s(E - mu + gamma) s(mu + gamma - E), s the logistic function   BPDC
    ``Filter.ppr``             alpha / (1 - (1 - alpha) E)                                    PageRank (GDC)
    ``Filter.heat``            exp(-time (1 - E))                                             heat kernel (GDC)
    ``Filter.sum``             w_1 P_1(E) + w_2 P_2(E) + ..., weights of either sign
    ``Filter.custom``          any function of a float
    ========================== ============================================================== =================

    >>> from qdc import Filter
    >>> narrow = Filter.gaussian(mu=0.3, sigma=0.1)
    >>> narrow
    Filter.gaussian(mu=0.3, sigma=0.1)
    >>> narrow(0.3)
    1.0
    >>> narrow([0.3, 0.5]).round(3)
    array([1.   , 0.135])
    """

    __slots__ = ("_core", "_function", "_terms")
    _core: core.Filter
    _function: Callable[[float], float] | None
    _terms: tuple[tuple[float, Filter], ...]

    def __init__(self) -> None:
        raise TypeError("filters are made by Filter.gaussian, .band, .ppr, .heat, .sum or .custom")

    @staticmethod
    def _of(
        made_by: core.Filter,
        function: Callable[[float], float] | None = None,
        terms: tuple[tuple[float, Filter], ...] = (),
    ) -> Filter:
        made = object.__new__(Filter)
        made._core, made._function, made._terms = made_by, function, terms
        return made

    @staticmethod
    def gaussian(mu: float = core.DEFAULTS["mu"], sigma: float = core.DEFAULTS["sigma"]) -> Filter:
        """exp(-(E - mu)^2 / 2 sigma^2): quantum diffusion, a window of width sigma > 0 around mu."""
        return Filter._of(core.Filter.named("gaussian", mu, sigma))

    @staticmethod
    def band(mu: float = core.DEFAULTS["mu"], gamma: float = core.DEFAULTS["gamma"]) -> Filter:
        """s(E - mu + gamma) s(mu + gamma - E), s the logistic function: a band of half width gamma >= 0."""
        return Filter._of(core.Filter.named("band", mu, gamma))

    @staticmethod
    def ppr(alpha: float = core.DEFAULTS["alpha"]) -> Filter:
        """alpha / (1 - (1 - alpha) E): personalised PageRank, 0 < alpha <= 1."""
        return Filter._of(core.Filter.named("ppr", alpha))

    @staticmethod
    def heat(time: float = core.DEFAULTS["time"]) -> Filter:
        """exp(-time (1 - E)): the heat kernel, time >= 0."""
        return Filter._of(core.Filter.named("heat", time))

    @staticmethod
    def sum(terms: Iterable[tuple[float, Filter]]) -> Filter:
        """w_1 P_1(E) + w_2 P_2(E) + ..., given as pairs of a weight and a filter that is no Python function.

        >>> from qdc import Filter
        >>> both = Filter.sum([(1.0, Filter.gaussian(1.0, 0.5)), (-0.5, Filter.gaussian(-1.0, 0.5))])
        >>> round(both(1.0), 3)
        1.0
        """
        pairs = tuple((float(weight), term) for weight, term in terms)
        if any(term._function is not None for _, term in pairs):
            raise ParameterError("a sum has no Python functions among its terms", "add them up in one Filter.custom")
        return Filter._of(core.Filter.sum([(weight, term._core) for weight, term in pairs]), terms=pairs)

    @staticmethod
    def custom(function: Callable[[float], float], name: str | None = None) -> Filter:
        """Any function of a float in [-1, 1]; smooth ones are fast, steps need ``solver="dense"``."""
        if not callable(function):
            raise ParameterError(f"a filter is a function of the eigenvalue, not {type(function).__name__}")
        chosen = str(name or getattr(function, "__name__", "custom"))
        return Filter._of(core.Filter.custom(chosen, function), function)

    @property
    def name(self) -> str:
        """``gaussian``, ``band``, ``ppr``, ``heat``, ``sum``, or the name of a custom filter."""
        return self._core.name

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters by name; empty for a custom filter."""
        return self._core.parameters

    def __call__(self, energy: Any) -> Any:
        """P(E) of a number, or of every number of an array."""
        if np.ndim(energy) == 0:
            return self._core.evaluate(float(energy))
        return np.vectorize(self._core.evaluate, otypes=[np.float64])(energy)

    def __repr__(self) -> str:
        if self._function is not None:
            return f"Filter.custom({self._function!r}, name={self.name!r})"
        if self._terms:
            return f"Filter.sum({list(self._terms)!r})"
        values = ", ".join(f"{name}={self.parameters[name]!r}" for name in _PARAMETERS[self.name])
        return f"Filter.{self.name}({values})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter):
            return NotImplemented
        return (self.name, self.parameters, self._function) == (other.name, other.parameters, other._function)

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.parameters.items()), self._function))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._function is not None:
            return Filter.custom, (self._function, self.name)
        if self._terms:
            return Filter.sum, (list(self._terms),)
        return getattr(Filter, self.name), tuple(self.parameters[name] for name in _PARAMETERS[self.name])


def as_filter(filter: FilterLike, **parameters: float | None) -> Filter:
    """The filter of a name and its parameters, or the one given; parameters it does not take are an error."""
    given = {name: value for name, value in parameters.items() if value is not None}
    if isinstance(filter, str):
        if filter not in _PARAMETERS:
            choices = ", ".join(_PARAMETERS)
            raise ParameterError(f"filter = {filter!r} is unknown", f"choose {choices}, a qdc.Filter or a function")
        takes = _PARAMETERS[filter]
        foreign = [name for name in given if name not in takes]
        if foreign:
            raise ParameterError(
                f"the filter {filter!r} does not take {', '.join(foreign)}", f"it takes {' and '.join(takes)}"
            )
        return getattr(Filter, filter)(**given)  # type: ignore[no-any-return]
    if given:
        raise ParameterError(
            f"{', '.join(given)} given next to a filter object", "give parameters to the filter itself, or name it"
        )
    return filter if isinstance(filter, Filter) else Filter.custom(filter)
