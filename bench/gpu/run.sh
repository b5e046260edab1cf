#!/usr/bin/env bash
# Training steps of ten splits on the GPU: qdc and PyTorch Geometric in turns. Usage: bench/gpu/run.sh DATA [MATRIX.npz of cora]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
data=$1
steps="$root/target/release/examples/steps"
cargo build --release --manifest-path "$root/Cargo.toml" -p qdc-cuda --example steps
both() {
    "$steps" "$data/$1.npz" "${@:2}"
    python3 "$root/bench/gpu/peer.py" "$data/$1.npz" "${@:2}"
}
for name in cornell cora chameleon squirrel pubmed; do both "$name" gcn; done
for name in cora chameleon squirrel pubmed; do both "$name" gat; done
if [ $# -gt 1 ]; then
    both cora gcn --matrix "$2"
    both cora gat --matrix "$2"
fi
