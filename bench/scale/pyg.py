"""Approximate personalised PageRank by PyTorch Geometric and by qdc's local route: time and error in one run.

    python pyg.py --qdc target/release/qdc [GRAPH ...]

Both get the same graph, one thread, alpha 0.15 and a threshold of 1e-4. PyTorch Geometric is GDC(exact=False, eps=1e-4): what
its transform does, compiled before the clock starts. qdc is `kernel --solver local`, at the first accuracy of a list at which
its error on 200 rows is no larger than the peer's. CPU seconds of making the kernel; errors against the same rows solved to
1e-12: the largest over the entries that are kept, and over those that should be kept.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np
import scipy.sparse as sp
import torch
import torch_geometric
import torch_geometric.transforms as T

ALPHA, EPS, SAMPLE = 0.15, 1e-4, 200
ACCURACIES = (1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4)


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def adjacency(qdc, graph, folder):
    """The graph as qdc reads it: rewiring it zero times writes its adjacency."""
    path = os.path.join(folder, "graph.npz")
    run(qdc, "sdrf", graph, "--iterations", "0", "-o", path)
    matrix = sp.load_npz(path).tocsr()
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.data[:] = 1.0
    return matrix, path


def exact_rows(matrix, rows):
    """alpha (I - (1 - alpha) L)^-1 e_i for some i, by iteration."""
    with_loops = (matrix + sp.identity(matrix.shape[0])).tocsr()
    root = sp.diags_array(1.0 / np.sqrt(np.asarray(with_loops.sum(axis=1)).ravel()))
    transition = (root @ with_loops @ root).tocsr()
    start = np.zeros((matrix.shape[0], len(rows)))
    start[rows, np.arange(len(rows))] = ALPHA
    found = start.copy()
    for _ in range(170):
        found = start + (1 - ALPHA) * (transition @ found)
    return found.T


def errors(kernel, rows, exact):
    """The largest error of kept entries, and of those that should be kept, and the share of the latter that is."""
    part = kernel[rows].toarray()
    difference = np.abs(part - exact)
    wanted = exact >= EPS
    return float(difference[part != 0].max()), float(difference[wanted].max()), float((part[wanted] != 0).mean())


def by_pyg(matrix):
    coo = matrix.tocoo()
    edges = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
    gdc = T.GDC(1.0, "sym", None, {"method": "ppr", "alpha": ALPHA, "eps": EPS}, {"method": "threshold", "eps": EPS}, False)

    def once(edge_index, nodes):
        from torch_geometric.utils import add_self_loops, coalesce

        weights = torch.ones(edge_index.shape[1])
        index, weights = add_self_loops(edge_index, weights, fill_value=1.0, num_nodes=nodes)
        index, weights = coalesce(index, weights, nodes)
        index, weights = gdc.diffusion_matrix_approx(index, weights, nodes, "sym", **gdc.diffusion_kwargs)
        return gdc.sparsify_sparse(index, weights, nodes, **gdc.sparsification_kwargs)

    once(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)  # compiles
    start = cpu_seconds()
    index, weights = once(edges, matrix.shape[0])
    seconds = cpu_seconds() - start
    index = index.numpy()
    return seconds, sp.coo_array((weights.numpy(), (index[0], index[1])), shape=matrix.shape).tocsr()


def by_qdc(qdc, path, accuracy, folder):
    output = os.path.join(folder, "kernel.npz")
    report = json.loads(run(
        qdc, "kernel", path, "--filter", "ppr", "--alpha", str(ALPHA), "--epsilon", str(EPS), "--normalize", "none",
        "--solver", "local", "--accuracy", str(accuracy), "--threads", "1", "--json", "--quiet", "-o", output,
    ))  # fmt: skip
    return report, sp.load_npz(output).tocsr()


def compare(qdc, graph, folder):
    matrix, path = adjacency(qdc, graph, folder)
    rows = np.linspace(0, matrix.shape[0] - 1, SAMPLE).astype(int)
    exact = exact_rows(matrix, rows)
    seconds, kernel = by_pyg(matrix)
    theirs = errors(kernel, rows, exact)
    for accuracy in ACCURACIES:
        report, kernel = by_qdc(qdc, path, accuracy, folder)
        ours = errors(kernel, rows, exact)
        if ours[0] <= theirs[0] and ours[1] <= theirs[1] and ours[2] >= theirs[2]:
            break
    print(json.dumps({
        "graph": graph, "nodes": matrix.shape[0], "edges": matrix.nnz // 2, "pyg_cpu_s": round(seconds, 2),
        "qdc_cpu_s": round(report["cpu_seconds"], 2), "ratio": round(seconds / report["cpu_seconds"], 1),
        "pyg_error_kept": theirs[0], "qdc_error_kept": ours[0], "pyg_error_wanted": theirs[1], "qdc_error_wanted": ours[1],
        "pyg_kept_of_wanted": theirs[2], "qdc_kept_of_wanted": ours[2],
        "accuracy": accuracy, "proved": report["error_bound"], "measured": report["error_estimate"],
    }), flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--qdc", required=True)
    parser.add_argument("graphs", nargs="*", default=["pubmed", "powerlaw:n=20000,degree=11,seed=0"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(json.dumps({"torch": torch.__version__, "torch_geometric": torch_geometric.__version__}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for graph in arguments.graphs:
            compare(arguments.qdc, graph, folder)


if __name__ == "__main__":
    main()
