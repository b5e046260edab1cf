"""One training step with its evaluation of the bank network (`ends`) in PyTorch on one core, in three formulations.

`python bank.py DATASET.npz [--hidden 64] [--seconds 20]` prints one JSON object. The formulations: `kept`, the channels
f_k(L) X as dense matrices, one product each; `stacked`, the same as one batched product; `series`, f_k(L) (X W_k) by
Clenshaw's recurrence with sparse X and sparse L. Time is the CPU time of the process, the least of the steps but the first.
The network is that of qdc's `--model bank --preset ends`: eight channels, constant columns, row norm, softmax weights,
ReLU, dropout, linear readout, Adam with three groups.
"""

import argparse
import json
import time

import numpy as np
import scipy.sparse as sp
import torch

torch.set_num_threads(1)


def chebyshev(function, tolerance=1e-6, points=256):
    angles = (np.arange(points) + 0.5) * np.pi / points
    values = function(np.cos(angles))
    coefficients = np.array([2 / points * (values * np.cos(k * angles)).sum() for k in range(points)])
    coefficients[0] /= 2
    tail = np.cumsum(np.abs(coefficients[::-1]))[::-1]
    return coefficients[: max(1, int((tail > tolerance).sum()))]


def csr(matrix):
    matrix = sp.csr_matrix(matrix, dtype=np.float32)
    parts = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)
    return torch.sparse_csr_tensor(*map(torch.tensor, parts), size=matrix.shape)


class Map(torch.autograd.Function):
    """sum_k c_k T_k(L) x; symmetric, so the backward pass is the same map."""

    @staticmethod
    def forward(context, x, matrix, coefficients):
        context.matrix, context.coefficients = matrix, coefficients
        return Map.clenshaw(x, matrix, coefficients)

    @staticmethod
    def clenshaw(x, matrix, coefficients):
        if len(coefficients) == 1:
            return coefficients[0] * x
        following, current = torch.zeros_like(x), coefficients[-1] * x
        for c in coefficients[-2:0:-1]:
            following.neg_().add_(x, alpha=c)
            # following = 2 L current + (c x - following), in one call
            following, current = current, torch.addmm(following, matrix, current, alpha=2.0)
        following.neg_().add_(x, alpha=coefficients[0])
        return torch.addmm(following, matrix, current)

    @staticmethod
    def backward(context, gradient):
        return Map.clenshaw(gradient.contiguous(), context.matrix, context.coefficients), None, None


class SparseLinear(torch.autograd.Function):
    """X W with sparse X; its transpose is kept for the backward pass."""

    @staticmethod
    def forward(context, weight, x, transposed):
        context.transposed = transposed
        return x @ weight

    @staticmethod
    def backward(context, gradient):
        return context.transposed @ gradient, None, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    data = np.load(options.dataset)
    features = data["node_features"].astype(np.float32)
    labels = torch.tensor(data["node_labels"].astype(np.int64))
    train = torch.tensor(np.flatnonzero(data["train_masks"][0]))
    validation = torch.tensor(np.flatnonzero(data["val_masks"][0]))
    nodes, edges = len(labels), data["edges"].astype(np.int64)
    adjacency = sp.coo_matrix((np.ones(len(edges)), edges.T), shape=(nodes, nodes))
    adjacency = ((adjacency + adjacency.T) > 0).astype(np.float64).tolil()
    adjacency.setdiag(1)
    adjacency = adjacency.tocsr()
    root = sp.diags(np.asarray(adjacency.sum(1)).ravel() ** -0.5)
    transition = (root @ adjacency @ root).tocsr()
    lowest = sp.linalg.eigsh(transition, 1, which="SA", return_eigenvectors=False)[0]
    gaussian = lambda mu, sigma: lambda e: np.exp(-((e - mu) ** 2) / (2 * sigma**2))
    windows = [(1.0, 1.0), (1.0, 0.5), (1.0, 0.25), (1.0, 0.125), (lowest, 1.0), (lowest, 0.5)]
    series = [np.array([1.0]), np.array([0.0, 1.0])] + [chebyshev(gaussian(*window)) for window in windows]
    matrix, x, transposed = csr(transition), csr(features), csr(features.T)
    dense = torch.tensor(features)
    channels = [Map.clenshaw(dense, matrix, [float(c) for c in s]) for s in series]
    sizes = [float(z.pow(2).sum(1).mean().sqrt()) for z in channels]
    with_constant = [torch.cat([z, torch.full((nodes, 1), 0.3 * s)], 1) for z, s in zip(channels, sizes)]
    stack = torch.stack(with_constant)
    classes, count = int(labels.max()) + 1, len(series)
    result = {"dataset": options.dataset, "degrees": [len(s) - 1 for s in series]}
    for way in ["kept", "stacked", "series"]:
        torch.manual_seed(0)
        weights = torch.nn.Parameter(torch.empty(count, features.shape[1] + 1, options.hidden))
        for matrix_k in weights.data:
            torch.nn.init.xavier_uniform_(matrix_k)
        separate = [torch.nn.Parameter(w.clone()) for w in weights.data]
        bodies = [weights] if way == "stacked" else separate
        mixing = torch.nn.Parameter(torch.zeros(count))
        readout = torch.nn.Linear(count * options.hidden, classes)
        groups = [
            {"params": bodies, "weight_decay": 3e-3},
            {"params": [mixing], "weight_decay": 0.0},
            {"params": list(readout.parameters()), "weight_decay": 1e-4},
        ]
        adam = torch.optim.Adam(groups, lr=0.01, fused=True)

        def logits(training):
            if way == "stacked":
                hidden = list(torch.bmm(stack, weights))
            elif way == "kept":
                hidden = [z @ w for z, w in zip(with_constant, separate)]
            else:
                hidden = []
                for s, size, w in zip(series, sizes, separate):
                    h = SparseLinear.apply(w[:-1], x, transposed)
                    hidden.append(Map.apply(h, matrix, [float(c) for c in s]) + 0.3 * size * w[-1])
            shares = count * torch.softmax(mixing, 0)
            joined = torch.cat([s * torch.nn.functional.normalize(h) for s, h in zip(shares, hidden)], 1)
            return readout(torch.nn.functional.dropout(torch.relu(joined), 0.5, training))

        least, begin, steps = float("inf"), time.perf_counter(), 0
        while steps < 4 or (time.perf_counter() - begin < options.seconds and steps < 100):
            start = time.process_time()
            adam.zero_grad()
            torch.nn.functional.cross_entropy(logits(True)[train], labels[train]).backward()
            adam.step()
            with torch.no_grad():
                out = logits(False)
                torch.nn.functional.cross_entropy(out[validation], labels[validation]).item()
            steps += 1
            if steps > 1:
                least = min(least, time.process_time() - start)
        result[way + "_ms"] = round(least * 1e3, 2)
    print(json.dumps(result))


main()
