"""The programs in the documentation run as they stand, one page after the other, each page in one namespace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx
import pytest
import torch
from torch_geometric.data import Data

import qdc
import qdc.pyg

ROOT = Path(__file__).parents[2]


def programs(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def given() -> dict[str, Any]:
    """What the guide takes for granted: a graph ``A`` with labels ``y``, and a ``data`` object with features ``x``."""
    club = networkx.karate_club_graph()
    both = torch.tensor([*club.edges, *((b, a) for a, b in club.edges)]).T
    side = torch.tensor([club.nodes[vertex]["club"] == "Officer" for vertex in club]).long()
    data = Data(x=torch.rand(34, 16), edge_index=both, y=side, train_mask=torch.arange(34) % 2 == 0)
    return {"A": networkx.to_scipy_sparse_array(club), "y": side, "data": data, "x": torch.rand(183, 16)}


@pytest.mark.parametrize("page", ["README.md", "python/README.md", "docs/guides/python.md"])
def test_the_programs_of_a_page_run(page: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    guide = page.startswith("docs")
    if guide:
        request.getfixturevalue("data_dir")
    request.getfixturevalue("monkeypatch").chdir(tmp_path)
    found = programs(page)
    namespace = given() if guide else {}  # a README stands for itself
    for program in found:
        shortened = program.replace("trials=50", "trials=2").replace("hidden=32", "hidden=4")
        exec(compile(shortened, page, "exec"), namespace)
    assert found


def test_the_reference_names_everything_public() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", page))))
    missing = {name for module in (qdc, qdc.pyg, qdc.datasets) for name in module.__all__} - named - {"__version__"}
    assert not missing
