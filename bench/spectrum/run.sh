#!/usr/bin/env bash
# Builds qdc, makes a virtual environment with NumPy, and prints the table of RESULTS.md. QDC_DATA names the datasets.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${QDC_DATA:?set QDC_DATA to the folder of datasets}"
cargo build --release -q
[ -d bench/.venv ] || { python3 -m venv bench/.venv && bench/.venv/bin/pip install -q numpy scipy; }
bench/.venv/bin/python bench/spectrum/run.py target/release/qdc
