"""Writes tests/golden/bank_karate.npz: the bank network in PyTorch, float64, on Zachary's karate club.

Filters are applied through a full eigendecomposition. `python golden_bank.py OUT.npz` repeats it.
"""

import sys

import numpy as np
import torch

torch.set_default_dtype(torch.float64)

EDGES = """0 1 0 2 0 3 0 4 0 5 0 6 0 7 0 8 0 10 0 11 0 12 0 13 0 17 0 19 0 21 0 31 1 2 1 3 1 7 1 13 1 17 1 19 1 21
1 30 2 3 2 7 2 8 2 9 2 13 2 27 2 28 2 32 3 7 3 12 3 13 4 6 4 10 5 6 5 10 5 16 6 16 8 30 8 32 8 33 9 33 13 33 14 32
14 33 15 32 15 33 18 32 18 33 19 33 20 32 20 33 22 32 22 33 23 25 23 27 23 29 23 32 23 33 24 25 24 27 24 31 25 31
26 29 26 33 27 33 28 31 28 33 29 32 29 33 30 32 30 33 31 32 31 33 32 33"""
OTHERS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21]
HIDDEN = 6


def main(path):
    edges = np.array(EDGES.split(), dtype=np.uint64).reshape(-1, 2)
    nodes = 34
    adjacency = np.eye(nodes)
    for i, j in edges.astype(int):
        adjacency[i, j] = adjacency[j, i] = 1
    root = adjacency.sum(1) ** -0.5
    energies, vectors = torch.linalg.eigh(torch.tensor(root[:, None] * adjacency * root[None]))
    generator = np.random.default_rng(7)
    features = np.where(generator.random((nodes, 12)) < 0.2, generator.integers(1, 4, (nodes, 12)), 0).astype(float)
    labels = np.array([0 if v in OTHERS else 1 for v in range(nodes)], dtype=np.uint32)
    train = np.arange(0, nodes, 3, dtype=np.uint32)
    x = torch.tensor(features)
    gaussian = lambda mu, sigma: torch.exp(-((energies - mu) ** 2) / (2 * sigma**2))
    apply = lambda response, z: vectors @ (response[:, None] * (vectors.T @ z))
    out = {"edges": edges, "features": features, "labels": labels, "train": train}
    fixed = [x, apply(energies, x), apply(gaussian(1.0, 0.25), x), apply(gaussian(-0.5, 0.5), x)]
    for case, norm, layers, window in [("linear", 1, 0, 0), ("layers", 0, 1, 0), ("window", 1, 0, 1)]:
        weights = {}

        def weight(name, *shape, values=None):
            values = generator.normal(size=shape) * 0.4 if values is None else np.array(values, dtype=float)
            weights[name] = torch.tensor(values, requires_grad=True)
            return weights[name]

        channels = [x] if window else fixed
        width = HIDDEN if layers else 2
        joined, shares = [], weight("mixing.weight", 1, len(channels))
        shares = len(channels) * torch.softmax(shares[0], 0)
        for k, z in enumerate(channels):
            size = z.pow(2).sum(1).mean().sqrt()
            h = z @ weight(f"channels.{k}.weight", z.shape[1], HIDDEN)
            if window:
                mu_sigma = weight(f"channels.{k}.window", 1, 2, values=[[0.7, 0.4]])[0]
                h = apply(gaussian(mu_sigma[0], mu_sigma[1]), h)
            h = h + 0.3 * size * weight(f"channels.{k}.bias", 1, HIDDEN)
            joined.append(shares[k] * (h / h.norm(dim=1, keepdim=True) if norm else h))
        readout = torch.cat([weight(f"readout.{k}.weight", HIDDEN, width) for k in range(len(channels))])
        logits = torch.relu(torch.cat(joined, 1)) @ readout + weight("readout.bias", 1, width)
        if layers:
            logits = torch.relu(logits) @ weight("readout.second.weight", HIDDEN, 2)
            logits = logits + weight("readout.second.bias", 1, 2)
        rows = torch.tensor(train.astype(int))
        loss = torch.nn.functional.cross_entropy(logits[rows], torch.tensor(labels.astype(int))[rows])
        loss.backward()
        out[f"{case}.logits.all"] = logits.detach().numpy()
        out[f"{case}.loss.train"] = np.array([loss.item()])
        for name, value in weights.items():
            out[f"{case}.weight.{name}"] = value.detach().numpy()
            out[f"{case}.gradient.{name}"] = value.grad.numpy()
    np.savez_compressed(path, **out)


main(sys.argv[1])
