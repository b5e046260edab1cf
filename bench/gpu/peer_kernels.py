"""Seconds of a QDC kernel by PyTorch on the GPU: `linalg.eigh`, product, sparsification, kept entries back on the host.

  python peer_kernels.py DATASET.npz [--sigma 0.1] [--top-k K] [--times 3]

Gaussian window at mu 0.3, f64, entries of at least 1e-4 (or the K largest of each row), symmetric normalisation: the
kernel that the example `kernels` of qdc-cuda makes. L lies on the device before the clock starts. The least of all.
"""
import argparse
import json
import time

import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--sigma", type=float, default=0.1)
parser.add_argument("--top-k", type=int)
parser.add_argument("--times", type=int, default=3)
a = parser.parse_args()

file = np.load(a.data)
nodes = file["node_labels"].shape[0]
pairs = torch.from_numpy(file["edges"].astype(np.int64)).cuda()
adjacency = torch.zeros(nodes, nodes, dtype=torch.float64, device="cuda")
adjacency[pairs[:, 0], pairs[:, 1]] = 1
adjacency = torch.maximum(adjacency, adjacency.T)
adjacency.fill_diagonal_(1)
root = adjacency.sum(1).rsqrt()
transition = root[:, None] * adjacency * root[None, :]


def kernel():
    energies, vectors = torch.linalg.eigh(transition)
    weights = torch.exp(-((energies - 0.3) ** 2) / (2 * a.sigma**2))
    q = (vectors * weights) @ vectors.T
    if a.top_k is None:
        kept = torch.where(q >= 1e-4, q, 0)
    else:
        values, columns = q.topk(a.top_k, dim=1)
        kept = torch.zeros_like(q).scatter_(1, columns, values.clamp(min=0))
        kept = torch.maximum(kept, kept.T)
    degrees = kept.sum(1)
    scale = torch.where(degrees > 0, degrees.rsqrt(), 0)
    kept = scale[:, None] * kept * scale[None, :]
    rows, columns = kept.nonzero(as_tuple=True)
    return rows.cpu(), columns.cpu(), kept[rows, columns].cpu()


def timed():
    torch.cuda.synchronize()
    start = time.perf_counter()
    entries = kernel()[2].numel()
    torch.cuda.synchronize()
    return time.perf_counter() - start, entries


timed()  # warms up
seconds, entries = min(timed() for _ in range(a.times))
print(json.dumps({"graph": a.data, "sigma": a.sigma, "top_k": a.top_k, "seconds": round(seconds, 4), "entries": entries, "by": "torch"}))
