"""Golden files: the small ones lie in the repository, large ones and datasets where QDC_GOLDEN and QDC_DATA say."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from scipy import sparse

COMMITTED = Path(__file__).parents[2] / "tests" / "golden"


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
