"""The extension module; what users see is in the modules beside it."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

_Integers: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
_Reals: TypeAlias = NDArray[np.float64] | NDArray[np.float32]
_Csr: TypeAlias = tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]
_Report: TypeAlias = dict[str, Any]
_Options: TypeAlias = dict[str, Any]
_Call: TypeAlias = dict[str, Any]
_Labels: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.bool_]]

__all__ = [
    "DEFAULTS",
    "PROBES",
    "SDRF_ITERATIONS",
    "Dataset",
    "DeviceArray",
    "Filter",
    "Graph",
    "Job",
    "Resident",
    "Search",
    "Spectrum",
    "__version__",
    "bank_features",
    "check_sparsify",
    "command_line",
    "dataset_names",
    "dynamics",
    "homophily",
    "kernel_from",
    "merge",
    "models",
    "presets",
    "sdrf",
    "set_threads",
    "space_file",
    "spectral_homophily",
    "suggest",
    "train",
    "transition",
    "window_homophily",
]
__version__: str
DEFAULTS: dict[str, float]
PROBES: int
SDRF_ITERATIONS: int

@final
class Filter:
    @staticmethod
    def named(name: str, first: float, second: float = ...) -> Filter: ...
    @staticmethod
    def sum(terms: list[tuple[float, Filter]]) -> Filter: ...
    @staticmethod
    def custom(name: str, function: Callable[[float], float]) -> Filter: ...
    def evaluate(self, energy: float) -> float: ...
    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> dict[str, float]: ...

class Graph:
    def __new__(cls, nodes: int, rows: _Integers, columns: _Integers, weights: _Reals | None, rule: str) -> Self: ...
    @property
    def nodes(self) -> int: ...
    @property
    def edges(self) -> int: ...
    @property
    def self_loops(self) -> int: ...
    def arrays(self) -> _Csr: ...

@final
class Spectrum:
    def __new__(
        cls,
        graph: Graph,
        pairs: str,
        around: float,
        solver: str,
        self_loop: float,
        memory: int | None,
        seed: int,
        call: _Call,
    ) -> Spectrum: ...
    @property
    def nodes(self) -> int: ...
    @property
    def pairs(self) -> int: ...
    @property
    def is_complete(self) -> bool: ...
    @property
    def report(self) -> _Report: ...
    @property
    def eigenvalues(self) -> NDArray[np.float64]: ...
    @property
    def eigenvectors(self) -> NDArray[np.float64]: ...
    def nearest(self, mu: float, count: int) -> tuple[int, int]: ...
    def arrays(self) -> _Csr: ...

def set_threads(threads: int | None = None) -> None: ...
def command_line(arguments: Sequence[str | PathLike[str]]) -> int: ...
def check_sparsify(rule: str, value: float) -> None: ...

@final
class Job:
    def __new__(cls, graph: Graph, filter: Filter, options: _Options, call: _Call) -> Job: ...
    @property
    def plan(self) -> _Report: ...
    def build(self, call: _Call) -> tuple[_Csr, _Report]: ...
    def build_resident(self, call: _Call) -> Resident | None: ...
    def rows(self, start: int, stop: int, call: _Call) -> tuple[_Csr, str]: ...

@final
class Resident:
    @property
    def indptr(self) -> DeviceArray: ...
    @property
    def indices(self) -> DeviceArray: ...
    @property
    def data(self) -> DeviceArray: ...

@final
class DeviceArray:
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

def merge(shards: Sequence[tuple[_Csr, str]], call: _Call) -> tuple[_Csr, _Report]: ...
def kernel_from(spectrum: Spectrum, filter: Filter, options: _Options, call: _Call) -> tuple[_Csr, _Report]: ...
def homophily(graph: Graph, labels: NDArray[np.uint32]) -> dict[str, float]: ...
def spectral_homophily(spectrum: Spectrum, labels: NDArray[np.uint32], call: _Call) -> list[_Report]: ...
def window_homophily(
    graph: Graph, labels: _Labels, windows: list[tuple[float, float]], probes: int, seed: int, call: _Call
) -> list[_Report]: ...
def suggest(graph: Graph, labels: _Labels, seed: int, call: _Call) -> _Report: ...
def transition(graph: Graph, self_loop: float) -> _Csr: ...
def sdrf(
    graph: Graph, iterations: int, tau: float, removal_bound: float, variant: str, seed: int, call: _Call
) -> tuple[_Csr, _Report]: ...
def dynamics(
    graph: Graph,
    equation: str,
    start: NDArray[np.float64],
    times: NDArray[np.float64],
    potential: NDArray[np.float64] | None,
    self_loop: float,
    call: _Call,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]: ...

_Booleans: TypeAlias = NDArray[np.bool_]

def dataset_names() -> list[str]: ...

@final
class Dataset:
    def __new__(
        cls, name: str, data_dir: str | PathLike[str] | None = None, split: str = "48/32/20", seed: int = 0
    ) -> Dataset: ...
    @staticmethod
    def of_arrays(
        name: str,
        graph: Graph,
        features: NDArray[np.float32],
        labels: NDArray[np.uint32],
        masks: Sequence[_Booleans] | None,
        split: str,
        seed: int,
    ) -> Dataset: ...
    @property
    def name(self) -> str: ...
    @property
    def classes(self) -> int: ...
    @property
    def labels(self) -> NDArray[np.int64]: ...
    def adjacency_arrays(self) -> _Csr: ...
    def sparse_features(self) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any], int] | None: ...
    def dense_features(self) -> NDArray[np.float32]: ...
    def masks(self, part: str) -> _Booleans: ...

def bank_features(
    graph: Graph, features: NDArray[np.float32], preset: str, memory: int | None, call: _Call
) -> list[tuple[str, NDArray[np.float32]]]: ...
def presets() -> list[str]: ...
def models() -> list[str]: ...
def train(
    dataset: Dataset,
    model: str,
    values: list[tuple[str, str]],
    splits: list[int] | None,
    seed: int,
    seeds: int,
    ensemble: bool,
    max_steps: int | None,
    batch_nodes: int | None,
    metric: str | None,
    memory: int | None,
    spectrum: Spectrum | None,
    device: str,
    call: _Call,
) -> _Report: ...
def space_file(name: str) -> str | None: ...

@final
class Search:
    def __new__(cls, dataset: Dataset, model: str, settings: _Options) -> Search: ...
    def run(
        self,
        study: str | None,
        study_name: str | None,
        jobs: int | None,
        train: Callable[[str, Callable[[], bool]], str | None] | None,
        call: _Call,
    ) -> _Report: ...
    def trial(self, point: str, call: _Call) -> str: ...
