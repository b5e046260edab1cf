#!/usr/bin/env bash
# Kernels by qdc and by today's tools in one run: bench/kernel/run.sh FOLDER_OF_DATASETS [compare.py's options]
# Makes its own virtual environment in bench/.venv (or uses QDC_BENCH_VENV, which must hold numpy, scipy, torch and
# torch_geometric) and builds the release binary.
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${1:?the folder with cora.npz and the other datasets}
shift
venv=${QDC_BENCH_VENV:-bench/.venv}
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet numpy scipy torch torch_geometric
fi
cargo build --release --workspace --quiet
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
exec "$venv/bin/python" bench/kernel/compare.py "$data" --qdc target/release/qdc "$@"
