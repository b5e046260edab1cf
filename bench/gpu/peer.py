"""Milliseconds per training step, evaluation included, of PyTorch Geometric on the GPU: one split at a time.

  python peer.py DATASET.npz gcn|gat [--matrix SCIPY.npz] [--hidden 64] [--heads 4] [--steps 200]

The network, its layers, dropout and the matrix are those of the example `steps` of qdc-cuda; ten splits one after the other
take ten times as long. Time is read with the device synchronised before and after, after 20 steps to warm up.
"""
import argparse
import json
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv, GCNConv

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("model")
parser.add_argument("--matrix")
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--steps", type=int, default=200)
a = parser.parse_args()

file = np.load(a.data)
x = torch.from_numpy(file["node_features"].astype(np.float32)).cuda()
y = torch.from_numpy(file["node_labels"].astype(np.int64)).cuda()
train, val, test = (torch.from_numpy(file[k][0].astype(bool)).cuda() for k in ("train_masks", "val_masks", "test_masks"))
weight = None
if a.matrix:
    matrix = np.load(a.matrix)
    rows = np.repeat(np.arange(len(matrix["indptr"]) - 1), np.diff(matrix["indptr"]))
    edges = torch.from_numpy(np.stack([matrix["indices"].astype(np.int64), rows])).cuda()
    weight = torch.from_numpy(matrix["data"].astype(np.float32)).cuda()
else:
    pairs = file["edges"].astype(np.int64)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    edges = torch.from_numpy(np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0).T.copy()).cuda()


class Net(torch.nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.gcn = a.model == "gcn"
        if self.gcn:
            given = {"cached": True, "normalize": weight is None}
            given = given if weight is None else {"normalize": False}
            self.first, self.last = GCNConv(inputs, a.hidden, **given), GCNConv(a.hidden, classes, **given)
        else:
            loops = weight is None
            self.first = GATConv(inputs, a.hidden, heads=a.heads, dropout=0.5, add_self_loops=loops)
            self.last = GATConv(a.hidden * a.heads, classes, heads=a.heads, concat=False, dropout=0.5, add_self_loops=loops)

    def forward(self, x):
        more = (edges, weight) if self.gcn and weight is not None else (edges,)
        x = (F.relu if self.gcn else F.elu)(self.first(F.dropout(x, 0.5, self.training), *more))
        return self.last(F.dropout(x, 0.5, self.training), *more)


net = Net(x.shape[1], int(y.max()) + 1).cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)


def step():
    net.train()
    optimizer.zero_grad()
    F.cross_entropy(net(x)[train], y[train]).backward()
    optimizer.step()
    net.eval()
    with torch.no_grad():
        z = net(x)
        hit = z.argmax(1) == y
        return hit[val].float().mean().item(), F.cross_entropy(z[val], y[val]).item(), hit[test].float().mean().item()


for _ in range(20):
    step()
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(a.steps):
    scores = step()
torch.cuda.synchronize()
each = 1e3 * (time.perf_counter() - start) / a.steps
print(json.dumps({"dataset": a.data, "model": a.model, "step_ms": round(each, 4), "ten_splits_ms": round(10 * each, 3),
                  "torch": torch.__version__, "device": torch.cuda.get_device_name()}))
