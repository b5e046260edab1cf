"""The bank and the learned window in PyTorch, against the golden file the Rust network is held to."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conftest import golden

from qdc.errors import ParameterError
from qdc.pyg import FilterBank, LearnedWindow

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.fixture(autouse=True)
def double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def setting() -> tuple[Any, torch.Tensor, torch.Tensor]:
    archive = golden("bank_karate.npz")
    adjacency = torch.eye(34)
    for i, j in archive["edges"].astype(int):
        adjacency[i, j] = adjacency[j, i] = 1
    root = adjacency.sum(1) ** -0.5
    return archive, root[:, None] * adjacency * root, torch.tensor(archive["features"])


def channels(transition: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
    windows = [LearnedWindow(1.0, 0.25), LearnedWindow(-0.5, 0.5)]
    return [x, transition @ x, *(window(transition, x).detach() for window in windows)]


@pytest.mark.parametrize(("case", "norm"), [("linear", True), ("layers", False)])
def test_the_bank_is_the_one_of_the_golden_file(case: str, norm: bool) -> None:
    archive, transition, x = setting()
    inputs = channels(transition, x)
    bank = FilterBank(inputs, 2, hidden=6, norm=norm, readout=case, dropout=0.0)  # type: ignore[arg-type]
    golden = {name: torch.tensor(archive[name]) for name in archive.files if name.startswith(f"{case}.")}
    weight = lambda name: golden[f"{case}.weight.{name}"]  # noqa: E731
    with torch.no_grad():
        for k, own in enumerate(bank.weights):
            own.copy_(torch.cat([weight(f"channels.{k}.weight"), weight(f"channels.{k}.bias")]))
        bank.mixing.copy_(weight("mixing.weight")[0])
        bank.readout.weight.copy_(torch.cat([weight(f"readout.{k}.weight") for k in range(4)]).T)
        bank.readout.bias.copy_(weight("readout.bias")[0])
        if bank.second is not None:
            bank.second.weight.copy_(weight("readout.second.weight").T)
            bank.second.bias.copy_(weight("readout.second.bias")[0])
    logits = bank(inputs)
    assert torch.allclose(logits, golden[f"{case}.logits.all"], atol=1e-9)
    train = torch.tensor(archive["train"].astype(int))
    labels = torch.tensor(archive["labels"].astype(int))
    torch.nn.functional.cross_entropy(logits[train], labels[train]).backward()
    assert bank.mixing.grad is not None
    assert torch.allclose(bank.mixing.grad, golden[f"{case}.gradient.mixing.weight"][0], atol=1e-9)
    assert abs(bank.shares().mean().item() - 1.0) < 1e-12


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("mu", "sigma"), [(1.0, 0.5), (0.2, 0.1), (-1.4, 3.0)])
def test_a_learned_window_is_the_gaussian_and_differentiable(device: str, mu: float, sigma: float) -> None:
    _, transition, x = setting()
    energies, vectors = torch.linalg.eigh(transition)
    window = LearnedWindow(mu, sigma).to(device)
    for matrix in (transition, transition.to_sparse_csr()):
        out = window(matrix.to(device), x.to(device))
        response = torch.exp(-((energies - mu) ** 2) / (2 * sigma**2))
        assert torch.allclose(out.cpu(), vectors @ (response[:, None] * (vectors.T @ x)), atol=1e-10)
    score = lambda w: window_score(w, transition.to(device), x.to(device))  # noqa: E731
    score(window).backward()
    for name in ("mu", "sigma"):
        values = []
        for step in (1e-6, -1e-6):
            moved = LearnedWindow(mu, sigma).to(device)
            with torch.no_grad():
                getattr(moved, name).add_(step)
            values.append(score(moved).item())
        assert abs(float(getattr(window, name).grad) - (values[0] - values[1]) / 2e-6) < 1e-5


def window_score(window: LearnedWindow, transition: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return window(transition, x).sin().sum()


def test_what_cannot_be_is_refused() -> None:
    for call in (
        lambda: FilterBank([], 2),
        lambda: FilterBank([torch.ones(3, 1)], 2, readout="three"),  # type: ignore[arg-type]
        lambda: LearnedWindow(mu=2.0),
        lambda: LearnedWindow(sigma=0.0),
    ):
        with pytest.raises(ParameterError):
            call()
