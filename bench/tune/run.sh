#!/usr/bin/env bash
# Optuna + PyTorch Geometric against `qdc tune`: GCN+QDC, published space, the same number of trials, one thread each.
#   PYTHON=venv/bin/python QDC=target/release/qdc bench/tune/run.sh DATA cornell 20 [SPLITS]
# DATA holds NAME.npz. Prints two JSON lines and the ratio of CPU seconds.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$1 dataset=${2:-cornell} trials=${3:-20} splits=${4:-10}
python=${PYTHON:-python3} qdc=${QDC:-target/release/qdc}
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/data" # no spectrum kept from before: both find their own
ln -s "$(realpath "$data/$dataset.npz")" "$work/data/"
/usr/bin/time -f '%U %S' -o "$work/cpu" "$qdc" tune "$dataset" --model gcn+qdc --trials "$trials" --batch 1 --threads 1 \
    --study "$work/s.db" --data-dir "$work/data" --quiet --json | tee "$work/ours.json"
"$python" "$here/optuna_pyg.py" "$data/$dataset.npz" "$work/s.db" --trials "$trials" --splits "$splits" | tee "$work/theirs.json"
"$python" "$here/compare.py" "$work/theirs.json" "$work/ours.json" "$work/cpu"
