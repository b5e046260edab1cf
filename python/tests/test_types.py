"""What a type checker tells a user of the installed package."""

from __future__ import annotations

from pathlib import Path

from mypy import api

PROGRAM = """
from typing import Any, assert_type
import numpy as np
import qdc
from qdc.pyg import QDC

edges = np.array([[0, 1], [1, 2]])
matrix, report = qdc.kernel(edges, mu=0.3, sigma=0.1, sparsify=qdc.TopK(2), return_report=True)
assert_type(report, dict[str, Any])
assert_type(qdc.Spectrum(edges).pairs, int)
assert_type(qdc.homophily(edges, [0, 1, 1]), float)
QDC(mu=0.3, sparsify=None, normalize="row")
qdc.kernel(edges, solver="magic")  # wrong
qdc.kernel(edges, sparsify=8)  # wrong
qdc.TopK("8")  # wrong
QDC(mu="0.3")  # wrong
qdc.sdrf(edges, variant="other")  # wrong
qdc.train("texas", progress=print, seed="0")  # wrong
"""


def test_a_type_checker_finds_wrong_calls_and_nothing_else(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_missing_imports = true\n[mypy-torch.*]\nfollow_imports = skip\n")
    options = ["--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path / "cache")]
    printed, problems, _ = api.run([*options, str(program)])
    assert not problems
    found = {int(line.split(":")[1]) for line in printed.splitlines() if ": error:" in line}
    expected = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")}
    assert found == expected, printed
