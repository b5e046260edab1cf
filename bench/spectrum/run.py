"""512 pairs of every dataset around three points: qdc against NumPy's full eigh, one thread each, CPU seconds.

usage: QDC_DATA=folder run.py [path/to/qdc [DATASET...]] > table.md      needs numpy (bench/.venv or any other)
The eigenvalues are compared with NumPy's window, groups of equal eigenvalues taken whole as qdc takes them.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
import time

import numpy as np

DATASETS = "cornell texas wisconsin chameleon cora citeseer squirrel actor pubmed".split()
TOO_LARGE_FOR_EIGH = {"pubmed"}  # about 24 minutes and 12 GB
TOLERANCE = 1e-8
PAIRS = 512


def transition(name):
    with np.load(os.path.join(os.environ["QDC_DATA"], name + ".npz")) as data:
        edges, nodes = data["edges"], len(data["node_labels"])
    matrix = np.zeros((nodes, nodes))
    matrix[edges[:, 0], edges[:, 1]] = matrix[edges[:, 1], edges[:, 0]] = 1
    np.fill_diagonal(matrix, 1)
    root = 1 / np.sqrt(matrix.sum(1))
    return matrix * root[:, None] * root[None, :]


def eigh(name):
    matrix = transition(name)
    start = time.process_time()
    values = np.linalg.eigh(matrix)[0]
    return values, time.process_time() - start


def window(values, mu):
    radius = np.sort(np.abs(values - mu))[min(PAIRS, len(values)) - 1] + TOLERANCE
    inside = np.flatnonzero(np.abs(values - mu) <= radius)
    low, high = inside[0], inside[-1] + 1
    while low > 0 and values[low] - values[low - 1] <= TOLERANCE:
        low -= 1
    while high < len(values) and values[high] - values[high - 1] <= TOLERANCE:
        high += 1
    return values[low:high]


def qdc(program, name, mu, file):
    command = [program, "spectrum", name, "--pairs", str(PAIRS), f"--around={mu}", "-o", file]
    command += ["--json", "--quiet", "--threads", "1", "--memory", "4GB"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    report = json.loads(text)
    if status != 0:
        sys.exit(f"{' '.join(command)}: {report}")
    return report, usage.ru_utime, usage.ru_maxrss / 1e3


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "target/release/qdc"
    model = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")][:1]
    print(f"{(model or [platform.processor()])[0]}, one thread, CPU seconds; NumPy {np.__version__}.\n")
    print("| dataset | mu | pairs | solver | residual_max | missing | largest difference | qdc s | eigh s | ratio | peak MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:] or DATASETS:
            values, seconds = (None, None) if name in TOO_LARGE_FOR_EIGH else eigh(name)
            for mu in (-0.5, 0.0, 0.5):
                file = os.path.join(folder, "pairs.npz")
                report, ours, peak = qdc(program, name, mu, file)
                found = np.load(file)["eigenvalues"]
                if values is None:
                    missing, difference = f"{report['counted'] - len(found)} (by inertia)", "-"
                    theirs = ratio = "-"
                else:
                    expected = window(values, mu)
                    missing = str(len(expected) - len(found))
                    same = len(expected) == len(found)
                    difference = f"{np.abs(expected - found).max():.0e}" if same else "-"
                    theirs, ratio = f"{seconds:.2f}", f"{seconds / ours:.1f}"
                print(
                    f"| {name} | {mu} | {report['pairs']} | {report['solver']} | {report['residual_max']:.0e} | {missing} | "
                    f"{difference} | {ours:.2f} | {theirs} | {ratio} | {peak:.0f} |",
                    flush=True,
                )


main()
