#!/usr/bin/env bash
# Builds qdc, makes a virtual environment with numba, and prints the table of RESULTS.md. QDC_DATA names the datasets.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${QDC_DATA:?set QDC_DATA to the folder of datasets}"
cargo build --release -q
[ -x bench/.venv-sdrf/bin/python ] || { python3 -m venv bench/.venv-sdrf && bench/.venv-sdrf/bin/pip install -q numpy numba; }
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
exec bench/.venv-sdrf/bin/python bench/sdrf/compare.py target/release/qdc "$@"
