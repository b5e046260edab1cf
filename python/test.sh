#!/usr/bin/env bash
# Builds the wheel, proves that it stands alone, and tests it with real torch and torch_geometric.
#
# The test environment is python/.venv-test, or the one that QDC_TEST_VENV names (it is used as it is, plus the wheel).
set -euo pipefail
cd "$(dirname "$0")"
python="${PYTHON:-python3}"

if [ -d ../../shared/data ]; then
  QDC_DATA="${QDC_DATA:-$(cd ../../shared/data && pwd)}"
  QDC_GOLDEN="${QDC_GOLDEN:-$(cd ../../shared/golden && pwd)}"
  export QDC_DATA QDC_GOLDEN
fi

echo "== wheel"
rm -rf target/wheels
"$python" -m pip wheel --quiet --no-deps --wheel-dir target/wheels .
ls -l target/wheels

echo "== a clean environment with NumPy and SciPy alone"
clean="$(mktemp -d)"
trap 'rm -rf "$clean"' EXIT
"$python" -m venv "$clean"
"$clean/bin/pip" install --quiet target/wheels/qdc-*.whl
(cd "$clean" && bin/python - <<'PYTHON'
import numpy, scipy.sparse, sys
import qdc
ring = scipy.sparse.diags_array([numpy.ones(9), numpy.ones(9)], offsets=[-1, 1]).tocsr()
assert qdc.kernel(ring, mu=0.3, sigma=0.1).shape == (10, 10)
assert "torch" not in sys.modules
try:
    import qdc.pyg
except ImportError as error:
    assert "pip install torch" in str(error)
else:
    raise SystemExit("qdc.pyg imported without torch")
print("imported qdc", qdc.__version__)
PYTHON
)
"$clean/bin/qdc" --version

echo "== tests"
venv="${QDC_TEST_VENV:-.venv-test}"
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/pip" install --quiet --requirement requirements-test.txt
"$venv/bin/pip" install --quiet --no-deps --force-reinstall target/wheels/qdc-*.whl
"$venv/bin/ruff" check .
"$venv/bin/ruff" format --check .
"$venv/bin/pytest"
# Doctests run on the installed package: the one in this folder has no extension module.
installed="$("$venv/bin/python" -I -c 'import os, qdc; print(os.path.dirname(qdc.__file__))')"
"$venv/bin/pytest" --doctest-modules --import-mode=importlib -p no:cacheprovider "$installed"
"$venv/bin/mypy" qdc
python="$(cd "$(dirname "$venv/bin/python")" && pwd)/python"
(cd "$clean" && "$python" -m mypy.stubtest --ignore-disjoint-bases qdc._core)
echo "python: all tests passed"
