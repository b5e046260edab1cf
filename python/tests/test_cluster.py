"""What docs/guides/cluster.md says, with processes of this machine in the place of a cluster's."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import networkx
import pytest
from conftest import ROOT, trials_of

GUIDE = (ROOT / "docs" / "guides" / "cluster.md").read_text()
RUNNING, COMPLETE = 0, 1


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """The text with small things in the place of large ones, each of which must be there."""
    for word, other in changes:
        assert word in text, word
        text = text.replace(word, other)
    return text


def start(script: str, folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **environment}
    return subprocess.Popen(["sh", "-ec", script], cwd=folder, env=environment, start_new_session=True)


def kill(job: subprocess.Popen[bytes]) -> None:
    """kill -9 of the shell and what it runs."""
    os.killpg(job.pid, signal.SIGKILL)
    assert job.wait(timeout=60) == -signal.SIGKILL


def test_an_array_of_processes_makes_the_kernel_of_one(tmp_path: Path) -> None:
    array, merge = blocks("sh")[:2]
    graph = networkx.barabasi_albert_graph(700, 4, seed=2)
    with gzip.open(tmp_path / "big.csv.gz", "wt") as file:
        file.writelines(f"{a},{b}\n" for a, b in graph.edges)
    (tmp_path / "parts").mkdir()
    array = replaced(array, ("N=1000000", "N=700"), ("(N + 15) / 16", "(N + 3) / 4"))
    # The last index is killed, and submitted again.
    for indices in ([0, 1, 2, 3], [3]):
        jobs = [start(array, tmp_path, SLURM_ARRAY_TASK_ID=str(index), SLURM_CPUS_PER_TASK="1") for index in indices]
        if len(jobs) > 1:
            kill(jobs.pop())
        assert [job.wait(timeout=120) for job in jobs] == [0] * len(jobs)
    assert start(replaced(merge, ("sbatch --wait array.sh && ", "")), tmp_path).wait(timeout=60) == 0
    whole = re.search(r"qdc kernel .* --memory 8GB", array, re.DOTALL)
    assert whole is not None
    assert start(f"{whole[0]} -o whole.npz --quiet", tmp_path, SLURM_CPUS_PER_TASK="2").wait(timeout=60) == 0
    assert (tmp_path / "q.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_processes_that_share_a_study_on_postgresql_lose_and_double_no_trial(postgres: str, tmp_path: Path) -> None:
    script = replaced(
        blocks("sh")[2],
        ("cora", "csbm:n=300,homophily=0.2,seed=0"),
        ("--trials 250", "--trials 8 --max-steps 30"),
        ("postgresql://user@host/studies", f"'{postgres}'"),
    )

    first = start(replaced(script, (" --quiet", " 2>remarks")), tmp_path)
    remarks, deadline = tmp_path / "remarks", time.monotonic() + 120
    while not (remarks.exists() and "\ntrial " in remarks.read_text()):  # the first that ended is the best so far
        assert time.monotonic() < deadline, "no trial ended within two minutes"
        time.sleep(0.005)
    os.killpg(first.pid, signal.SIGSTOP)  # it stands still while we look
    assert {trial[0] for trial in trials_of(postgres, tmp_path)} >= {RUNNING, COMPLETE}
    kill(first)
    others = [start(script, tmp_path) for _ in range(2)]
    assert [job.wait(timeout=120) for job in others] == [0, 0]
    found = trials_of(postgres, tmp_path)
    assert [trial[0] for trial in found] == [COMPLETE] * 8
    # The first ten points of a search depend on its seed and their numbers alone.
    alone = tmp_path / "alone.db"
    assert start(script.replace(f"'{postgres}'", "alone.db"), tmp_path).wait(timeout=120) == 0
    assert found == trials_of(alone, tmp_path)


def test_the_program_with_ray_runs(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed, so the program with it was not run: pip install ray")
    program = "\n".join(blocks("python"))
    program = replaced(
        program,
        ("ray.init()", 'ray.init(num_cpus=2, include_dashboard=False, logging_level="error")'),
        ("trials=50", "trials=2, max_steps=3"),
    )
    check = """
assert (Q != qdc.kernel(graph, mu=0.3, sigma=0.5, sparsify=qdc.TopK(32))).nnz == 0
assert report["trials"] == 2
"""
    (tmp_path / "program.py").write_text(program + check)
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "studies.db").is_file()
