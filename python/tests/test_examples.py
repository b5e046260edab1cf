"""The examples run, and say what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_notebook_runs_from_top_to_bottom() -> None:
    import nbclient
    import nbformat

    notebook = nbformat.read(EXAMPLES / "walkthrough.ipynb", as_version=4)
    where = {"metadata": {"path": str(EXAMPLES)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    printed = [output["text"] for cell in notebook.cells for output in cell.get("outputs", []) if "text" in output]
    assert any("test accuracy" in text for text in printed)


def test_the_study_reuses_one_spectrum() -> None:
    printed = run("optuna_study.py", "csbm:n=200,homophily=0.2,seed=0", "5")
    assert "with the kernel test" in printed


@pytest.mark.usefixtures("data_dir")
def test_node_classification_gains_five_points_on_a_real_dataset() -> None:
    lines = [line.split(maxsplit=4) for line in run("node_classification.py", "texas").splitlines()]
    assert [(line[0], line[4][:9]) for line in lines] == [("texas", "plain gra"), ("texas", "[QDC(mu=0")]
    before, after = (float(line[1]) for line in lines)
    assert after >= before + 5
