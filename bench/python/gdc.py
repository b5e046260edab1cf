"""qdc.pyg.GDC beside torch_geometric.transforms.GDC: the same transform, the same data, one process, turn by turn.

    QDC_DATA=/path/to/datasets python bench/python/gdc.py cora squirrel

Prints, for each dataset, CPU seconds (the minimum of several turns) and their ratio; both sides use one thread. That
the results agree is checked on the way, within the single precision of PyTorch Geometric.
"""

import json
import platform
import resource
import sys

import torch
import torch_geometric
import torch_geometric.transforms as T
from torch_geometric.data import Data

import qdc
from qdc.pyg import GDC, Dataset

TURNS = 3


def cpu_seconds(function):
    before = resource.getrusage(resource.RUSAGE_SELF)
    result = function()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, result


def compare(name, sparsification):
    data = Dataset(name)[0]
    plain = Data(edge_index=data.edge_index, num_nodes=data.num_nodes)
    diffusion = {"method": "ppr", "alpha": 0.15}
    theirs = T.GDC(1.0, "sym", "sym", diffusion, sparsification, exact=True)
    ours = GDC.from_pyg(theirs, threads=1)
    seconds = {"theirs": [], "ours": []}
    for _ in range(TURNS):
        for label, transform in (("ours", ours), ("theirs", theirs)):
            taken, result = cpu_seconds(lambda transform=transform: transform(plain))
            seconds[label].append(taken)
            if label == "ours":
                mine = result
    # PyTorch Geometric fills its k with zeros where a component has fewer vertices.
    edges = tuple(int((made.edge_attr > 1e-8).sum()) for made in (mine, result))
    weights = (float(mine.edge_attr.sum()), float(result.edge_attr.sum()))
    assert abs(edges[0] - edges[1]) < 1e-3 * edges[1] and abs(weights[0] / weights[1] - 1) < 1e-3, (edges, weights)
    best = {label: min(values) for label, values in seconds.items()}
    record = {
        "dataset": name, "nodes": plain.num_nodes, "sparsify": sparsification["method"], "edges": edges[0],
        "qdc_cpu_s": round(best["ours"], 3), "pyg_cpu_s": round(best["theirs"], 3),
        "ratio": round(best["theirs"] / best["ours"], 2),
    }  # fmt: skip
    print(json.dumps(record), flush=True)


def main(names):
    torch.set_num_threads(1)
    machine = {
        "machine": platform.processor() or platform.machine(), "python": platform.python_version(),
        "torch": torch.__version__, "torch_geometric": torch_geometric.__version__, "qdc": qdc.__version__,
        "threads": 1, "turns": TURNS,
    }  # fmt: skip
    print(json.dumps(machine), flush=True)
    for name in names:
        compare(name, {"method": "threshold", "eps": 1e-4})
        compare(name, {"method": "topk", "k": 64, "dim": 0})


if __name__ == "__main__":
    main(sys.argv[1:] or ["cora", "squirrel"])
