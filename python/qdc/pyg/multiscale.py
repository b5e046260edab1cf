"""MultiScale: the plain graph and a kernel side by side, and a network that reads both."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import BaseTransform

from ..errors import ParameterError
from .transforms import QDC, Rewiring


class MultiScale(BaseTransform):  # type: ignore[misc]
    """Attaches a second graph and leaves the first alone.

    ``rewiring`` (by default ``QDC()``) makes the second graph, which goes to ``data.<name>_edge_index`` and
    ``data.<name>_edge_weight``; batching treats it as an ``edge_index``.

    >>> import torch, qdc
    >>> from torch_geometric.data import Data
    >>> pair = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    >>> sorted(qdc.pyg.MultiScale(qdc.pyg.QDC(mu=1.0))(pair).keys())
    ['edge_index', 'qdc_edge_index', 'qdc_edge_weight', 'x']
    """

    def __init__(self, rewiring: Rewiring | None = None, name: str = "qdc") -> None:
        self.rewiring = rewiring if rewiring is not None else QDC()
        self.name = name

    def forward(self, data: Any) -> Any:
        """Adds the second graph to ``data``."""
        second = self.rewiring(data)
        data[f"{self.name}_edge_index"] = second.edge_index
        data[f"{self.name}_edge_weight"] = second[self.rewiring.weight]
        return data

    def __repr__(self) -> str:
        return f"MultiScale(rewiring={self.rewiring!r}, name={self.name!r})"


class MultiScaleGNN(nn.Module):
    """Two towers of graph convolutions, one on the plain graph and one on the kernel, and a linear readout.

    Each tower has its own layers and ends in its hidden width; ``concat`` joins the two, ``add`` sums them (both
    then end in width ``hidden``); ReLU; readout. The first tower normalises the plain graph itself, the second takes
    the kernel as it is.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 64,
        layers: int = 2,
        qdc_hidden: int | None = None,
        qdc_layers: int | None = None,
        dropout: float = 0.5,
        combinator: Literal["concat", "add"] = "concat",
        name: str = "qdc",
    ) -> None:
        super().__init__()
        if combinator not in ("concat", "add"):
            raise ParameterError(f"combinator = {combinator!r} is unknown", "choose concat or add")
        self.name, self.dropout, self.combinator = name, dropout, combinator
        qdc_hidden = hidden if qdc_hidden is None or combinator == "add" else qdc_hidden
        self.plain = _tower(features, hidden, layers, normalize=True)
        self.kernel = _tower(features, qdc_hidden, qdc_layers or layers, normalize=False)
        self.readout = nn.Linear(hidden + qdc_hidden if combinator == "concat" else hidden, classes)

    def forward(self, data: Data) -> Tensor:
        """Logits, one row for each vertex; ``data`` comes from ``MultiScale``."""
        plain = self._through(self.plain, data.x, data.edge_index, data.get("edge_weight"))
        weight = data[f"{self.name}_edge_weight"]
        kernel = self._through(self.kernel, data.x, data[f"{self.name}_edge_index"], weight)
        both = torch.cat([plain, kernel], dim=1) if self.combinator == "concat" else plain + kernel
        return self.readout(nn.functional.dropout(both.relu(), self.dropout, self.training))  # type: ignore[no-any-return]

    def _through(self, tower: nn.ModuleList, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        for depth, layer in enumerate(tower):
            x = nn.functional.dropout(x if depth == 0 else x.relu(), self.dropout, self.training)
            x = layer(x, edge_index, edge_weight)
        return x


def _tower(features: int, hidden: int, layers: int, normalize: bool) -> nn.ModuleList:
    widths = [features] + [hidden] * layers
    return nn.ModuleList(GCNConv(a, b, normalize=normalize, add_self_loops=normalize) for a, b in pairwise(widths))
