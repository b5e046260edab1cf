#!/usr/bin/env bash
# Cost and error of the local route over the number of vertices, and beside PyTorch Geometric. Usage: bench/scale/run.sh [PYTHON]
# PYTHON has torch, torch_geometric, numba and scipy; without it only the first table is made. QDC_DATA names the datasets.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --quiet
cargo build --release --quiet -p qdc-data --example scale
for filter in gaussian ppr; do
  for n in 10000 100000 1000000; do
    RAYON_NUM_THREADS=1 target/release/examples/scale "powerlaw:n=$n,degree=11,seed=0" "$filter" 1e-4 2000 200
  done
done
if [ -n "${1:-}" ]; then "$1" bench/scale/pyg.py --qdc target/release/qdc; fi
