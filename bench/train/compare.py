"""Milliseconds per training epoch, evaluation included, on one thread: PyTorch Geometric, PyTorch by hand, qdc.

The same two-layer network on the same graph. For each line of the result the rivals take turns, ROUNDS times, so that a slow
spell of the machine meets all of them. Time is CPU time, and the least of all epochs but the first of each turn is taken, by
the same rule for every rival (see `epochs`, and crates/qdc-nn/examples/epochs.rs for qdc): other work on the machine counts little.
The hand-written rival stores features as sparse rows and drops out stored entries only; it is the fairer one.

Lines are added to results/compare.json as they come, the newest for each dataset, graph and model; `--table` prints them.

  python compare.py DATA [quick] [--datasets cora,cornell] [--models gcn,gat] [--graphs plain,qdc]
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.utils import to_torch_csr_tensor

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/train/results/compare.json"
HIDDEN, HEADS, DROPOUT = 64, 4, 0.5
ROUNDS = 3
# epsilon 1e-4 on the kernel of mu 0.5, sigma 0.1 (all pairs) keeps a million entries and more
QDC = ["--mu", "0.5", "--sigma", "0.1", "--epsilon", "1e-4", "--pairs", "all", "--directed", "--symmetrize", "or"]
# PyTorch Geometric's attention keeps several numbers for each entry, head and column: above this they do not fit in 16 GB
MOST_ENTRIES_FOR_PYG_GAT = 2_000_000
# Its GCN keeps a row of the hidden layer for each entry
MOST_ENTRIES_FOR_PYG_GCN = 6_000_000


class Peer(torch.nn.Module):
    """PyTorch Geometric's layers; `normalize=False` because the matrix is normalised already."""

    def __init__(self, model, inputs, classes):
        super().__init__()
        self.gcn = model == "gcn"
        if self.gcn:
            self.first, self.last = GCNConv(inputs, HIDDEN, normalize=False), GCNConv(HIDDEN, classes, normalize=False)
        else:
            self.first = GATConv(inputs, HIDDEN, heads=HEADS, dropout=DROPOUT, add_self_loops=False)
            self.last = GATConv(HIDDEN * HEADS, classes, heads=HEADS, concat=False, dropout=DROPOUT, add_self_loops=False)

    def forward(self, x, graph, weight):
        extra = (weight,) if self.gcn else ()
        x = F.dropout(x, DROPOUT, self.training)
        x = (F.relu if self.gcn else F.elu)(self.first(x, graph, *extra))
        return self.last(F.dropout(x, DROPOUT, self.training), graph, *extra)


class Hand(torch.nn.Module):
    """A GCN as a PyTorch user may write it: sparse features, a sparse or dense matrix, no library."""

    def __init__(self, inputs, classes):
        super().__init__()
        glorot = torch.nn.init.xavier_uniform_
        self.a = torch.nn.Parameter(glorot(torch.empty(inputs, HIDDEN)))
        self.b = torch.nn.Parameter(glorot(torch.empty(HIDDEN, classes)))
        self.c, self.d = torch.nn.Parameter(torch.zeros(HIDDEN)), torch.nn.Parameter(torch.zeros(classes))

    def forward(self, x, graph, _weight):
        kept = F.dropout(x.values(), DROPOUT, self.training)
        x = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), kept, x.shape)
        h = F.dropout(F.relu(graph @ (x @ self.a) + self.c), DROPOUT, self.training)
        return graph @ (h @ self.b) + self.d


def epochs(net, x, graph, weight, y, train, val, seconds):
    """The least CPU time of an epoch, the first not counted, of at most 300 and what fits in `seconds`; 3 at least, or 1 where they are long."""
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    least, start, epoch = float("inf"), time.perf_counter(), 0
    while epoch < (4 if least < 3e3 else 2) or (time.perf_counter() - start < seconds and epoch < 300):
        begin = time.process_time()
        net.train()
        optimizer.zero_grad()
        F.cross_entropy(net(x, graph, weight)[train], y[train]).backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            (net(x, graph, weight).argmax(1) == y)[val].float().mean().item()
        taken = 1e3 * (time.process_time() - begin)
        least = taken if epoch <= 1 else min(least, taken)
        epoch += 1
    return least


def csr(matrix):
    parts = [torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices)]
    return torch.sparse_csr_tensor(*parts, torch.from_numpy(matrix.data.astype(np.float32)), matrix.shape)


def transition(data, nodes):
    edges = data["edges"]
    a = sp.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(nodes, nodes)).tocsr()
    a = ((a + a.T) > 0).astype(float).tolil()
    a.setdiag(1)
    a = a.tocsr()
    d = sp.diags_array(1 / np.sqrt(a.sum(1)))
    return (d @ a @ d).tocsr()


def peers(model, dense, matrix, y, train, val):
    """What PyTorch has to offer for this network and matrix: name -> (network, its arguments)."""
    nodes, classes, gcn = len(y), int(y.max()) + 1, model == "gcn"
    coo = matrix.tocoo()
    # entry (i, j) is the message from j to i
    index = torch.from_numpy(np.stack([coo.col, coo.row]).astype(np.int64))
    weight = torch.from_numpy(coo.data.astype(np.float32)) if gcn else None
    network = lambda: Peer(model, dense.shape[1], classes)
    found = {}
    # torch_sparse's layout stores the transpose; the matrix is symmetric
    if gcn or matrix.nnz <= 500_000:  # attention takes the same time in both formats, minutes above this
        found["pyg csr"] = network, (dense, to_torch_csr_tensor(index, weight, size=(nodes, nodes)), None, y, train, val)
    if matrix.nnz <= (MOST_ENTRIES_FOR_PYG_GCN if gcn else MOST_ENTRIES_FOR_PYG_GAT):
        found["pyg edge_index"] = network, (dense, index, weight, y, train, val)
    if gcn:
        network = lambda: Hand(dense.shape[1], classes)
        sparse = dense.to_sparse_csr()
        found["hand csr"] = network, (sparse, csr(matrix), None, y, train, val)
        if matrix.nnz > 0.05 * nodes * nodes:
            full = torch.from_numpy(matrix.toarray().astype(np.float32))
            found["hand dense"] = network, (sparse, full, None, y, train, val)
    return found


def ours(program, data, name, model, matrix, seconds):
    command = [program, f"{data}/{name}.npz", model, "--matrix", matrix, "--seconds", str(seconds)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def record(row):
    """Writes the line into the results, in place of an older one."""
    RESULTS.parent.mkdir(exist_ok=True)
    machine = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    old = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    key = lambda row: (row["dataset"], row["graph"], row["model"])
    rows = [other for other in old if key(other) != key(row)] + [row]
    RESULTS.write_text(json.dumps({
        "machine": machine[0] if machine else platform.processor(), "cores": len(machine), "python": sys.version.split()[0],
        "torch": torch.__version__, "torch_geometric": torch_geometric.__version__, "rows": rows}, indent=1))


def table():
    """The results as Markdown."""
    print("| dataset | matrix | entries | network | PyG, ms | by hand, ms | qdc, ms | PyG / qdc | hand / qdc | evaluation, ms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    def best(row, start):
        found = {k[len(start):]: v for k, v in row["peers"].items() if k.startswith(start)}
        form = min(found, key=found.get, default=None)
        return (f"{found[form]:.3g} ({form})", f"{found[form] / row['qdc']:.1f}") if form else ("", "")
    order = ["cornell", "cora", "chameleon", "squirrel", "pubmed"]
    rows = json.loads(RESULTS.read_text())["rows"]
    for row in sorted(rows, key=lambda row: (row["graph"] != "plain", row["model"] != "gcn", order.index(row["dataset"]))):
        (pyg, pyg_ratio), (hand, hand_ratio) = best(row, "pyg "), best(row, "hand ")
        print(f"| {row['dataset']} | {'L' if row['graph'] == 'plain' else 'Q'} | {row['entries']:,} | {row['model'].upper()} | {pyg} | "
              f"{hand} | {row['qdc']:.3g} | {pyg_ratio} | {hand_ratio} | {row['qdc evaluate']:.2g} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="?")
    parser.add_argument("quick", nargs="?", help="cornell and cora on the plain graph only")
    parser.add_argument("--datasets", default="cornell,cora,chameleon,squirrel,pubmed")
    parser.add_argument("--models", default="gcn,gat")
    parser.add_argument("--graphs", default="plain,qdc")
    parser.add_argument("--seconds", type=float, default=8, help="for each rival, all rounds together")
    parser.add_argument("--epochs", default=ROOT / "target/release/examples/epochs", help="the program that times qdc")
    parser.add_argument("--qdc", default=ROOT / "target/release/qdc", help="the program that makes kernels")
    parser.add_argument("--kernels", help="a folder to keep kernels in, to save making them again")
    parser.add_argument("--table", action="store_true", help="print the recorded lines and end")
    a = parser.parse_args()
    if a.table:
        return table()
    if a.quick:
        a.datasets, a.graphs = "cornell,cora", "plain"
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        kernels = pathlib.Path(a.kernels or scratch)
        for name in a.datasets.split(","):
            data = dict(np.load(f"{a.data}/{name}.npz"))
            dense = torch.from_numpy(data["node_features"].astype(np.float32))
            y = torch.from_numpy(data["node_labels"].astype(np.int64))
            train, val = (torch.from_numpy(data[k][0].astype(bool)) for k in ("train_masks", "val_masks"))
            for graph in a.graphs.split(","):
                if graph == "qdc" and name == "pubmed":
                    continue  # 200 million entries and more: no peer holds them
                path = pathlib.Path(scratch) / f"{name}-plain.npz" if graph == "plain" else kernels / f"{name}.npz"
                if graph == "plain":
                    sp.save_npz(path, transition(data, len(y)))
                elif not path.exists():
                    subprocess.run([a.qdc, "kernel", f"{a.data}/{name}.npz", *QDC, "-o", path, "--quiet"], check=True, stdout=subprocess.DEVNULL)
                matrix = sp.csr_array(sp.load_npz(path))
                for model in a.models.split(","):
                    rivals, seconds = peers(model, dense, matrix, y, train, val), a.seconds / ROUNDS
                    least, own = {}, []
                    for _ in range(ROUNDS):
                        for rival, (network, arguments) in rivals.items():
                            least[rival] = min(least.get(rival, float("inf")), epochs(network(), *arguments, seconds))
                        own.append(ours(a.epochs, a.data, name, model, path, seconds))
                    row = {"dataset": name, "graph": graph, "entries": matrix.nnz, "model": model,
                           "peers": {k: round(v, 2) for k, v in least.items()},
                           "qdc": min(run["epoch_ms"] for run in own), "qdc evaluate": min(run["evaluate_ms"] for run in own),
                           "form": own[0]["form"]}
                    print(json.dumps(row), flush=True)
                    record(row)
    table()


main()
