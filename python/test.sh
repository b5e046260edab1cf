#!/usr/bin/env bash
# Tests of the Python package: builds the release wheel, proves that it stands alone with NumPy and SciPy, and tests it
# with real torch and torch_geometric: pytest, doctests, examples, notebook, and the types.
#
# PostgreSQL is a feature of the wheel; it is built in where there is a server to test it with.
#
# Everything is made here: environments, build and wheel lie in target/python of the repository and are used again by
# the next run. Tests of real data need QDC_DATA, the large golden files QDC_GOLDEN. QDC_TEST_VENV names another environment for the tests; what it lacks is installed into it.
set -euo pipefail
cd "$(dirname "$0")"
cache="$(mkdir -p ../target/python && cd ../target/python && pwd)"
export CARGO_TARGET_DIR="$cache/build" PIP_DISABLE_PIP_VERSION_CHECK=1

skip() {
  echo "SKIPPED: the Python package: $1" >&2
  exit 0
}

# environment FOLDER REQUIREMENT...: a virtual environment with these, installed once.
environment() {
  local folder="$1" wanted
  shift
  wanted="$("$python" --version) $* $(cat requirements-test.txt)"
  if [ "$(cat "$folder/wanted" 2>/dev/null)" != "$wanted" ]; then
    [ -x "$folder/bin/pip" ] || "$python" -m venv "$folder" || return
    "$folder/bin/pip" install --quiet "$@" || return
    echo "$wanted" >"$folder/wanted"
  fi
}

python="${PYTHON:-python3}"
command -v "$python" >/dev/null || skip "there is no $python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "$("$python" --version) is older than 3.10"

venv="${QDC_TEST_VENV:-$cache/venv}"
clean="$cache/clean"
environment "$clean" --constraint requirements-test.txt numpy scipy || skip "$python and pip make no environment"
environment "$venv" --requirement requirements-test.txt & # torch is large: it comes while the wheel is built
installing=$!
trap 'kill "$installing" 2>/dev/null || true' EXIT

echo "== wheel"
rm -rf "$cache/wheels"
. ../crates/qdc-tune/tests/optuna/postgres.sh
features=()
[ -z "$(postgres_program initdb)" ] || features=(--config-settings "build-args=--features postgres")
"$clean/bin/pip" wheel --quiet --no-deps ${features[@]+"${features[@]}"} --wheel-dir "$cache/wheels" .
wheel="$(ls "$cache"/wheels/qdc-*-cp310-abi3-*.whl)"
ls -l "$wheel"

echo "== the Rust side"
cargo fmt --check
cargo clippy --locked --quiet --all-targets --all-features -- -D warnings

echo "== a clean environment with NumPy and SciPy alone"
"$clean/bin/pip" install --quiet --no-deps --force-reinstall "$wheel"
"$clean/bin/pip" check
readmes=("$PWD/README.md" "$(cd .. && pwd)/README.md")
(cd "$clean" && bin/python -I - "${readmes[@]}" <<'PYTHON'
import importlib.metadata, sys
import qdc
installed = {found.name.lower() for found in importlib.metadata.distributions()} - {"pip", "setuptools"}
assert installed == {"numpy", "scipy", "qdc"}, installed
for page in sys.argv[1:]:  # the first program of each README needs nothing else
    program = open(page).read().split("```python\n")[1].split("```")[0]
    seen = {}
    exec(compile(program, page, "exec"), seen)
    assert seen["Q"].nnz > 0
assert qdc.train("csbm:n=60,homophily=0.2,seed=0", "gcn+qdc", hidden=4, splits=[0])["test_mean"] >= 0
advice_for = {"pyg": "pip install torch", "ray": "pip install ray", "sklearn": "pip install scikit-learn"}
for name, advice in advice_for.items():
    try:
        getattr(qdc, name)
    except ImportError as error:
        assert advice in str(error), error
    else:
        raise SystemExit(f"qdc.{name} was imported without what it needs")
print("imported qdc", qdc.__version__)
PYTHON
)
"$clean/bin/qdc" --version

echo "== tests"
wait "$installing" || skip "the wheel stands alone, but pip could not install requirements-test.txt for its tests"
venv="$(cd "$venv" && pwd)"
ray=ray==2.60.0 # apart from the requirements, as not every Python has a wheel of it
has_ray() { "$venv/bin/python" -I -c 'import ray' 2>/dev/null; }
has_ray || "$venv/bin/pip" install --quiet "$ray" || echo "SKIPPED: qdc.ray: pip could not install $ray" >&2
"$venv/bin/pip" install --quiet --no-deps --force-reinstall "$wheel"
"$venv/bin/ruff" check .
"$venv/bin/ruff" format --check .
"$venv/bin/pytest" -p no:cacheprovider
# Doctests run on the installed package: the one in this folder has no extension module.
installed="$("$venv/bin/python" -I -c 'import os, qdc; print(os.path.dirname(qdc.__file__))')"
without=()
has_ray || without=(--ignore "$installed/ray")
(cd "$cache" && "$venv/bin/pytest" --doctest-modules --import-mode=importlib -p no:cacheprovider \
  ${without[@]+"${without[@]}"} --rootdir "$installed" "$installed")

echo "== types"
export MYPY_CACHE_DIR="$cache/mypy"
"$venv/bin/mypy" qdc
(cd "$cache" && "$venv/bin/python" -m mypy.stubtest --ignore-disjoint-bases qdc._core)
echo "python: all tests passed"
