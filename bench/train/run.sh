#!/usr/bin/env bash
# Trains the same networks with PyTorch Geometric, with PyTorch by hand, and with qdc, one thread each, in one run:
#   bench/train/run.sh DATA_FOLDER [quick]
# DATA_FOLDER holds cornell.npz, cora.npz, ... (qdc data path). Results are printed, and written to bench/train/results.
# Makes its own virtual environment in bench/.venv, or uses QDC_BENCH_VENV, which must hold numpy, scipy, scikit-learn, torch
# and torch_geometric.
set -euo pipefail
data=$(realpath "${1:?the folder with cora.npz and the other datasets}"); shift
cd "$(dirname "$0")/../.."
venv=${QDC_BENCH_VENV:-bench/.venv}
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet numpy scipy scikit-learn torch torch_geometric
fi
cargo build --release --quiet -p qdc-nn --example epochs
cargo build --release --quiet -p qdc-cli
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 RAYON_NUM_THREADS=1
"$venv/bin/python" bench/train/compare.py "$data" "$@"
"$venv/bin/python" bench/train/runs.py "$data" "$@"
"$venv/bin/python" bench/train/accuracy.py "$data" "$@"
"$venv/bin/python" bench/train/auc.py "$data" "$@"
