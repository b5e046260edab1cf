#!/usr/bin/env bash
# Trains the same networks with PyTorch Geometric, with PyTorch by hand, and with qdc, one thread each, in one run:
#   bench/train/run.sh DATA_FOLDER [quick]
# DATA_FOLDER holds cornell.npz, cora.npz, ... (qdc data path). Results are printed, and written to bench/train/results.
set -euo pipefail
data=$(realpath "$1"); shift
cd "$(dirname "$0")/../.."
if [ ! -x bench/.venv/bin/python ]; then
  python3 -m venv bench/.venv
  bench/.venv/bin/pip install --quiet torch torch_geometric numpy scipy
fi
cargo build --release --quiet -p qdc-nn --example epochs
cargo build --release --quiet -p qdc-cli
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
bench/.venv/bin/python bench/train/compare.py "$data" "$@"
bench/.venv/bin/python bench/train/accuracy.py "$data" "$@"
