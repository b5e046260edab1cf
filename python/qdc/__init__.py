"""Quantum diffusion convolution on graphs.

A graph goes in, a better graph for learning comes out: a sparse, normalised kernel that tells how often a quantum
particle that starts at one vertex is seen at another, through a window on the spectrum.

    >>> import networkx, qdc
    >>> A = networkx.to_scipy_sparse_array(networkx.karate_club_graph())
    >>> Q = qdc.kernel(A, filter="gaussian", mu=0.3, sigma=0.1, sparsify=qdc.TopK(8))
    >>> type(Q).__name__, Q.shape
    ('csr_array', (34, 34))

``qdc.pyg`` holds transforms for PyTorch Geometric, ``qdc.sklearn`` one for scikit-learn, ``qdc.ray`` kernels and
searches on a Ray cluster; ``python -m qdc`` is the command line. NumPy and SciPy are all that ``import qdc`` needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    from ._core import __version__, set_threads
except ImportError as error:
    message = "qdc lacks its compiled part. In a folder of sources? Leave it, and pip install ./python"
    raise ImportError(message) from error

from . import convert, datasets, errors
from ._bank import bank_features
from ._flow import dynamics, sdrf
from ._graph import Graph
from ._homophily import SpectralHomophily, WindowHomophily, homophily, spectral_homophily, suggest, window_homophily
from ._kernel import build_rows, kernel
from ._spectrum import Spectrum
from ._training import models, train, tune
from .errors import ConvergenceError, DataError, GraphError, MemoryLimitError, ParameterError, QdcError
from .filters import Filter
from .sparsify import Epsilon, TopK

if TYPE_CHECKING:
    from . import pyg as pyg
    from . import ray as ray
    from . import sklearn as sklearn

__all__ = [
    "ConvergenceError",
    "DataError",
    "Epsilon",
    "Filter",
    "Graph",
    "GraphError",
    "MemoryLimitError",
    "ParameterError",
    "QdcError",
    "SpectralHomophily",
    "Spectrum",
    "TopK",
    "WindowHomophily",
    "__version__",
    "bank_features",
    "build_rows",
    "convert",
    "datasets",
    "dynamics",
    "errors",
    "homophily",
    "kernel",
    "models",
    "sdrf",
    "set_threads",
    "spectral_homophily",
    "suggest",
    "train",
    "tune",
    "window_homophily",
]


def __getattr__(name: str) -> Any:
    # Imported on use: torch, scikit-learn and Ray are slow to import, and nobody has to have them.
    if name in ("pyg", "ray", "sklearn"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
