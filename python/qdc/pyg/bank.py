"""The bank of windows and the learned window as PyTorch modules, with the definition of ``qdc train --model bank``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from ..errors import ParameterError

_CONSTANT = 0.3  # the constant column of a channel, as a share of its size
_MU = (-1.5, 1.5)
_SIGMA = (0.02, 4.0)


class FilterBank(nn.Module):
    """Several channels of the same vertices, each with its own matrix, weighed by learned shares and read out.

    Channel k gives ``z_k W_k + c_k b_k`` with ``c_k`` 0.3 times the root mean square of the rows' norms of ``z_k``,
    each row divided by its norm; the channels are scaled by ``K softmax(a)``, joined, rectified, dropped out and read
    out. ``channels``, a matrix of features for each, fix the widths and the constants; ``forward`` takes the same list.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> channels = [torch.randn(5, 3), torch.randn(5, 7)]
    >>> bank = FilterBank(channels, classes=2, hidden=8)
    >>> bank(channels).shape, bank.shares().tolist()
    (torch.Size([5, 2]), [1.0, 1.0])
    """

    constants: Tensor

    def __init__(
        self,
        channels: Sequence[Tensor],
        classes: int,
        *,
        hidden: int = 64,
        norm: bool = True,
        readout: Literal["linear", "layers"] = "linear",
        dropout: float = 0.5,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not channels:
            raise ParameterError("a bank needs a channel", "give a list of matrices, such as the features X and L X")
        if readout not in ("linear", "layers"):
            raise ParameterError(f"readout = {readout!r} is unknown", "choose linear or layers")
        self.norm, self.dropout, self.input_dropout = norm, dropout, input_dropout
        sizes = torch.stack([z.pow(2).sum(1).mean().sqrt() for z in channels])
        self.register_buffer("constants", _CONSTANT * sizes)
        # The last row is the constant's.
        self.weights = nn.ParameterList(nn.Parameter(torch.empty(z.shape[1] + 1, hidden)) for z in channels)
        self.mixing = nn.Parameter(torch.zeros(len(channels)))
        joined = len(channels) * hidden
        self.readout = nn.Linear(joined, classes if readout == "linear" else hidden)
        self.second = nn.Linear(hidden, classes) if readout == "layers" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Starts every matrix by Glorot's rule, shares equal and biases at 0."""
        linear = [self.readout] if self.second is None else [self.readout, self.second]
        for weight in [*self.weights, *(layer.weight for layer in linear)]:
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.mixing)
        for layer in linear:
            nn.init.zeros_(layer.bias)

    def shares(self) -> Tensor:
        """The weight of each channel; their mean is 1."""
        return len(self.weights) * torch.softmax(self.mixing, 0)

    def groups(self, weight_decay: float, readout_decay: float) -> list[dict[str, object]]:
        """Parameter groups for an optimiser: decays of the channels' matrices and the readout, none for the shares."""
        readout = list(self.readout.parameters()) + ([] if self.second is None else list(self.second.parameters()))
        return [
            {"params": list(self.weights), "weight_decay": weight_decay},
            {"params": [self.mixing], "weight_decay": 0.0},
            {"params": readout, "weight_decay": readout_decay},
        ]

    def forward(self, channels: Sequence[Tensor]) -> Tensor:
        """Logits, one row for each vertex."""
        joined = []
        for z, weight, constant, share in zip(channels, self.weights, self.constants, self.shares(), strict=True):
            z = nn.functional.dropout(z, self.input_dropout, self.training)
            h = z @ weight[:-1] + constant * weight[-1]
            joined.append(share * (nn.functional.normalize(h) if self.norm else h))
        out = nn.functional.dropout(torch.cat(joined, 1).relu(), self.dropout, self.training)
        out = self.readout(out)
        if self.second is not None:
            out = self.second(nn.functional.dropout(out.relu(), self.dropout, self.training))
        return out  # type: ignore[no-any-return]


class LearnedWindow(nn.Module):
    """exp(-(L - mu)^2 / 2 sigma^2) x, with mu and sigma learned; on CPU and CUDA.

    ``transition`` is L, symmetric, as a dense or a sparse tensor. The filter is a Chebyshev series of L; its
    coefficients carry the gradient, so mu and sigma get theirs from the same recurrence that filters x. Both are held
    within the ranges of ``qdc train --model window``.

    >>> import torch
    >>> window = LearnedWindow(mu=1.0, sigma=0.5)
    >>> moved = window(torch.full((2, 2), 0.5), torch.tensor([[1.0], [1.0]]))  # an eigenvector of eigenvalue 1
    >>> torch.allclose(moved, torch.ones(2, 1), atol=1e-5)
    True
    >>> moved.sum().backward(); window.mu.grad is not None
    True
    """

    def __init__(self, mu: float = 0.5, sigma: float = 0.5) -> None:
        super().__init__()
        for name, value, (low, high) in (("mu", mu, _MU), ("sigma", sigma, _SIGMA)):
            if not low <= value <= high:
                raise ParameterError(f"{name} = {value} is out of range", f"choose it from {low} to {high}")
        self.mu = nn.Parameter(torch.tensor(float(mu)))
        self.sigma = nn.Parameter(torch.tensor(float(sigma)))

    def coefficients(self) -> Tensor:
        """Those of the Chebyshev series, differentiable in mu and sigma; enough of them for the precision."""
        mu, sigma = self.mu.double().clamp(*_MU), self.sigma.double().clamp(*_SIGMA)
        points = 32
        while points < 16.0 / float(sigma.detach()) + 32.0:
            points *= 2
        angles = (torch.arange(points, device=mu.device, dtype=torch.float64) + 0.5) * (torch.pi / points)
        values = torch.exp(-((torch.cos(angles) - mu) ** 2) / (2 * sigma**2))
        orders = torch.arange(points // 2, device=mu.device, dtype=torch.float64)
        coefficients = torch.cos(orders[:, None] * angles) @ values * (2.0 / points)
        coefficients = torch.cat([coefficients[:1] / 2, coefficients[1:]])
        tolerance = 1e-13 if self.mu.dtype == torch.float64 else 1e-8
        terms = int((coefficients.detach().abs().flip(0).cumsum(0).flip(0) > tolerance).sum())
        return coefficients[: max(terms, 1)].to(self.mu.dtype)

    def forward(self, transition: Tensor, x: Tensor) -> Tensor:
        """The filtered columns of ``x``."""
        coefficients = self.coefficients()
        previous, current, out = x, x, coefficients[0] * x
        for k in range(1, len(coefficients)):
            moved = transition @ current
            previous, current = current, moved if k == 1 else 2 * moved - previous
            out = out + coefficients[k] * current
        return out

    def extra_repr(self) -> str:
        return f"mu={self.mu.item():.4g}, sigma={self.sigma.item():.4g}"
