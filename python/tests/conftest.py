"""Golden files: the small ones lie in the repository, large ones and datasets where QDC_GOLDEN and QDC_DATA say.

And studies: a PostgreSQL server of the tests' own, and what a study holds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from scipy import sparse

import qdc

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "tests" / "golden"


def golden(name: str) -> Any:
    """The contents of a golden .npz or .json file, or a skip that says where it was looked for."""
    elsewhere = os.environ.get("QDC_GOLDEN")
    for folder in (COMMITTED, Path(elsewhere) if elsewhere else None):
        if folder is not None and (folder / name).exists():
            path = folder / name
            return json.loads(path.read_text()) if path.suffix == ".json" else np.load(path)
    pytest.skip(f"no {name}: it is not in tests/golden, and QDC_GOLDEN is {elsewhere!r}")


def adjacency(arrays: Any, nodes: int | None = None) -> sparse.csr_array:
    """The symmetric matrix of a golden file's undirected pairs."""
    edges = arrays["edges"]
    weights = arrays["weights"] if "weights" in arrays else np.ones(len(edges))
    nodes = nodes or int(edges.max()) + 1
    one_way = sparse.csr_array((weights, tuple(edges.T)), shape=(nodes, nodes))
    one_way.setdiag(0)
    one_way.eliminate_zeros()
    return one_way.maximum(one_way.T).tocsr()


@pytest.fixture(scope="session")
def karate() -> sparse.csr_array:
    return networkx.to_scipy_sparse_array(networkx.karate_club_graph(), weight=None, dtype=float)


@pytest.fixture(scope="session")
def random_graph() -> sparse.csr_array:
    return networkx.to_scipy_sparse_array(networkx.gnm_random_graph(300, 900, seed=1), dtype=float)


@pytest.fixture(scope="session")
def data_dir() -> str:
    folder = os.environ.get("QDC_DATA")
    if folder is None or not Path(folder).is_dir():
        pytest.skip(f"no datasets: QDC_DATA is {folder!r}")
    return folder


def postgres_shell(command: str) -> list[str]:
    """What a command prints that may use the shell functions of the tests of studies."""
    functions = ROOT / "crates" / "qdc-tune" / "tests" / "optuna" / "postgres.sh"
    shell = subprocess.run(["bash", "-c", f'. "{functions}"; {command}'], capture_output=True, text=True, timeout=120)
    return shell.stdout.splitlines()


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a private PostgreSQL server, started as the tests of studies start theirs."""
    try:
        qdc.tune("csbm:n=60,seed=0", "gcn", study="postgresql://nobody@localhost:1/none")
    except qdc.ParameterError as refused:
        if "without PostgreSQL" in str(refused):
            pytest.skip(f"this wheel was built without PostgreSQL; {refused.hint}")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)  # the server may run as another user
    server = folder / "server"
    try:
        printed = postgres_shell(f'start_postgres "{server}" && echo "$POSTGRES_ADDRESS"')
        if not printed or not printed[-1].startswith("postgresql://"):
            pytest.skip(printed[-1] if printed else "PostgreSQL did not start")
        yield printed[-1]
    finally:
        postgres_shell(f'POSTGRES_FOLDER="{server}"; stop_postgres')
        shutil.rmtree(folder, ignore_errors=True)


def trials_of(study: str | Path, folder: Path) -> list[Any]:
    """State, value, reports, parameters and attributes of every trial in the order of their numbers, but for times."""
    journal = folder / "journal.log"
    command = [sys.executable, "-I", "-m", "qdc", "study", "export", str(study), "-o", str(journal), "--quiet"]
    subprocess.run(command, check=True, timeout=60)
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    trials = []
    for line in lines:
        if line["op_code"] == 4:
            attributes = {key: value for key, value in line["user_attrs"].items() if key != "seconds"}
            for split in attributes.get("scores", []):
                del split["seconds"]
            trials.append((line["state"], line["value"], line["intermediate_values"], line["params"], attributes))
    return trials
