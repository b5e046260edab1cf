"""SDRF by qdc and by a dense program in the style of the authors', one thread: compare.py QDC [DATASET...].

The peer does what the published program does in each iteration: it squares a dense adjacency and computes the curvature
of every edge anew (its formula, `--variant code`), compiled by numba. The choice of the added edge, which it also makes,
is left out in its favour. It costs the same each time, so a few iterations are timed and scaled."""
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

import numba
import numpy as np

ITERATIONS = 100


@numba.njit(cache=True)
def value(square, a, degree, i, j):
    """Curvature of i -> j from the dense matrices."""
    most, least = max(degree[i], degree[j]), min(degree[i], degree[j])
    if most * least == 0:
        return 0.0
    sharp, largest = 0, 0.0
    for k in range(a.shape[0]):
        for found in (a[k, j] * (square[i, k] - a[i, k]), a[i, k] * (square[k, j] - a[k, j])):
            if found > 0:
                sharp += 1
                largest = max(largest, found)
    result = 2 / most + 2 / least - 2 + (2 / most + 1 / least) * square[i, j]
    return result + sharp / (most * largest) if largest > 0 else result


@numba.njit(cache=True)
def curvatures(a, square, degree):
    result = np.zeros(a.shape)
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            if a[i, j] != 0:
                result[i, j] = value(square, a, degree, i, j)
    return result


def peer(folder, name, budget):
    """Seconds of one iteration of the dense program (the mean of as many as fit into `budget` seconds)."""
    with np.load(os.path.join(folder, f"{name}.npz")) as file:
        edges, nodes = file["edges"], len(file["node_labels"])
    a = np.zeros((nodes, nodes))
    a[edges[:, 0], edges[:, 1]] = a[edges[:, 1], edges[:, 0]] = 1
    np.fill_diagonal(a, 0)
    started, count = time.process_time(), 0
    while count < 3 and time.process_time() - started < budget:
        found = curvatures(a, a @ a, a.sum(0))
        count += 1
    return (time.process_time() - started) / count, found[a != 0].min()


def ours(program, name, iterations, variant):
    """CPU seconds of the whole command, reading and writing included, and what it says."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--quiet", "--json", "--threads", "1", "sdrf", name, "--iterations", str(iterations),
                   "--variant", variant, "-o", os.path.join(folder, "graph.npz")]
        before = os.times()
        report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, report


program = sys.argv[1]
names = sys.argv[2:] or ["cornell", "cora", "citeseer", "chameleon", "squirrel", "pubmed"]
folder = os.environ["QDC_DATA"]
tiny = np.ones((3, 3)) - np.eye(3)
curvatures(tiny, tiny @ tiny, tiny.sum(0))  # compiled before the clock starts
model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
print(f"{model}, one thread, CPU seconds; NumPy {np.__version__}, numba {numba.__version__}.\n")
print(f"| dataset | edges | qdc, all curvatures | qdc, {ITERATIONS} iterations (formula) | qdc, {ITERATIONS} (code) | dense, one iteration | dense, {ITERATIONS} (scaled) | ratio |")
print("| --- | --- | --- | --- | --- | --- | --- | --- |")
for name in names:
    once, report = ours(program, name, 0, "formula")
    many = [ours(program, name, ITERATIONS, variant) for variant in ("formula", "code")]
    seconds = [pair[0] for pair in many]
    cells = ["", "", ""]
    if report["nodes"] <= 6000:  # a dense square of pubmed takes 3 GB and minutes
        dense, least = peer(folder, name, 20)
        assert abs(least - many[1][1]["least_curvature"][0]) < 1e-9, "both compute the same curvatures"
        cells = [f"{dense:.2f}", f"{ITERATIONS * dense:.0f}", f"{ITERATIONS * dense / seconds[1]:.0f}"]
    print(f"| {name} | {report['edges_before']} | {once:.2f} | {seconds[0]:.2f} | {seconds[1]:.2f} | {' | '.join(cells)} |", flush=True)
