"""qdc as a good citizen of its process: Ctrl-C, other threads, forks, memory, imports, the command line."""

from __future__ import annotations

import multiprocessing
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import networkx
import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data

import qdc
from qdc.pyg import QDC

PYTHON = [sys.executable, "-I"]  # the installed package, not the folder of sources that tests may run in

LONG_CALLS = {
    "kernel": "qdc.kernel(graph, mu=0.3, sigma=0.01, sparsify=qdc.TopK(8))",
    "kernel of my own filter": "qdc.kernel(graph, lambda energy: time.sleep(0.01) or energy**2, sparsify=qdc.TopK(8))",
    "dense spectrum": 'qdc.Spectrum(graph, solver="dense")',
    "window of a spectrum": "qdc.Spectrum(graph, pairs=2000, around=0.1)",
    "sdrf": "qdc.sdrf(graph, iterations=100_000)",
    "spectral homophily": "qdc.spectral_homophily(graph, [0] * 12000)",
    "train": 'qdc.train(dataset, "gcn+qdc", hidden=256, layers=3)',
    "tune": 'qdc.tune(dataset, "gcn", trials=10_000)',
}


@pytest.mark.parametrize("call", LONG_CALLS.values(), ids=LONG_CALLS.keys())
def test_ctrl_c_ends_a_long_call_within_a_second(call: str) -> None:
    program = f"""
import networkx, os, qdc, time
graph = qdc.Graph(networkx.barabasi_albert_graph(12000, 8, seed=0))
dataset = qdc.datasets.load("csbm:n=4000,homophily=0.2,seed=0")
print("begun", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", time.time(), flush=True)
    os._exit(0)  # work that cannot be stopped may still run; its thread is not ours to wait for
print("finished", flush=True)
"""
    with subprocess.Popen([*PYTHON, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(1.0)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        answer = process.stdout.readline().split()
    assert answer and answer[0] == "interrupted", "the call ended before it was interrupted, or did not react"
    assert float(answer[1]) - sent < 1.0


def test_other_threads_run_while_rust_works() -> None:
    graph = qdc.Graph(networkx.barabasi_albert_graph(1500, 8, seed=0))
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    qdc.kernel(graph, mu=0.3, sigma=0.05, sparsify=qdc.TopK(8), threads=1)
    done.set()
    ticker.join()
    assert ticks > 5, "the interpreter was held during the call"


def test_calls_from_several_threads_agree(random_graph: sparse.csr_array) -> None:
    expected = qdc.kernel(random_graph, mu=0.3, sigma=0.1)
    results: list[sparse.csr_array] = []
    workers = [
        threading.Thread(target=lambda: results.append(qdc.kernel(random_graph, mu=0.3, sigma=0.1))) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 4
    assert all(np.array_equal(result.data, expected.data) for result in results)


def _entries(graph: sparse.csr_array) -> int:
    return int(qdc.kernel(graph, mu=0.3, sigma=0.1).nnz)


def test_a_forked_child_can_compute_after_its_parent_did(random_graph: sparse.csr_array) -> None:
    expected = _entries(random_graph)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_entries, [random_graph] * 4).get(timeout=60) == [expected] * 4


def _resident() -> int:
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell resident memory")
@pytest.mark.parametrize("what", ["kernels", "transforms"])
def test_a_thousand_calls_leave_no_memory_behind(what: str, random_graph: sparse.csr_array) -> None:
    index, _ = qdc.convert.to_edge_index(random_graph)
    data, transform = Data(x=torch.ones(300, 1), edge_index=index), QDC(mu=0.3, sigma=0.2, threads=1)

    def call() -> None:  # some 200 kB in each: 200 MB if they stayed
        if what == "transforms":
            assert transform(data).num_edges > 10_000
            return
        matrix, _ = qdc.kernel(random_graph, mu=0.3, sigma=0.2, threads=1, return_report=True)
        assert matrix.nnz > 10_000
        with pytest.raises(qdc.ParameterError):
            qdc.kernel(random_graph, sigma=-1.0)

    for _ in range(50):
        call()
    before = _resident()
    for _ in range(1000):
        call()
    assert _resident() - before < 20e6


def test_importing_qdc_imports_nothing_large() -> None:
    large = ("torch", "torch_geometric", "sklearn", "networkx", "ray")
    program = f"import sys, qdc; print([m for m in {large} if m in sys.modules])"
    assert subprocess.run([*PYTHON, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def run_qdc(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PYTHON, "-m", "qdc", *arguments], capture_output=True, text=True, timeout=60)


def test_the_command_line_is_in_the_package() -> None:
    version = run_qdc("--version")
    assert (version.returncode, version.stdout) == (0, f"qdc {qdc.__version__}\n")
    assert run_qdc("no-such-command").returncode == 2
    help_text = run_qdc("--help")
    assert help_text.returncode == 0 and "Usage: qdc" in help_text.stdout
    script = Path(sys.executable).parent / "qdc"
    if script.exists():
        assert subprocess.run([script, "--version"], capture_output=True, text=True).stdout == version.stdout


def test_both_lock_files_name_the_same_versions() -> None:
    """The wheel is built from what the workspace's own tests ran on."""

    def locked(path: Path) -> dict[str, set[str]]:
        found = re.findall(r'^name = "(.+)"\nversion = "(.+)"$', path.read_text(), re.MULTILINE)
        return {name: {version for other, version in found if other == name} for name, _ in found}

    root = Path(__file__).parents[2]
    ours, theirs = locked(root / "python" / "Cargo.lock"), locked(root / "Cargo.lock")
    apart = {name: (ours[name], theirs[name]) for name in ours.keys() & theirs.keys() if not ours[name] <= theirs[name]}
    assert not apart and "qdc-core" in ours
    manifest = (root / "python" / "Cargo.toml").read_text()
    assert "default = " not in manifest, "PostgreSQL is in the wheel only where it is asked for"


def test_the_version_is_that_of_the_crates() -> None:
    manifest = Path(__file__).parents[2] / "Cargo.toml"
    found = re.search(r'\[workspace\.package\]\nversion = "(.+)"', manifest.read_text())
    assert found is not None and found[1] == qdc.__version__
