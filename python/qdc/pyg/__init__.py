"""For PyTorch Geometric: rewirings as transforms, the datasets, networks over two graphs and over banks of windows.

``QDC``, ``BPDC``, ``GDC`` and ``SDRF`` replace ``data.edge_index`` and write ``data.edge_weight``. The new weights are
normalised already, so layers must not do it again: ``GCNConv(..., normalize=False)``. ``GATConv`` reads the
pattern only, which holds its self-loops already: ``GATConv(..., add_self_loops=False)``.
"""

from __future__ import annotations

try:
    import torch  # noqa: F401
    import torch_geometric  # noqa: F401
except ImportError as error:
    raise ImportError("qdc.pyg needs PyTorch Geometric: pip install torch torch_geometric") from error

from .bank import FilterBank, LearnedWindow
from .dataset import Dataset
from .multiscale import MultiScale, MultiScaleGNN
from .transforms import BPDC, GDC, QDC, SDRF, Rewiring

__all__ = [
    "BPDC",
    "GDC",
    "QDC",
    "SDRF",
    "Dataset",
    "FilterBank",
    "LearnedWindow",
    "MultiScale",
    "MultiScaleGNN",
    "Rewiring",
]
