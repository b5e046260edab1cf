#!/usr/bin/env bash
# Studies of ours in Optuna 3.6.1 and the newest, on SQLite and, where it is installed, PostgreSQL.
#   run.sh [FOLDER]     the folder keeps the virtual environments between runs
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../../.." && pwd)
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
work=$(mktemp -d)
. "$here/postgres.sh"
trap 'stop_postgres; rm -rf "$work"' EXIT

cd "$root"
cargo build -q -p qdc-tune --example parabola ${QDC_TUNE_FEATURES-"--features=postgres"}
parabola=$root/target/debug/examples/parabola
for version in 3.6.1 5.0.0; do
    python=$folder/optuna-$version/bin/python
    if [ ! -x "$python" ]; then
        python3 -m venv "$folder/optuna-$version"
        "$folder/optuna-$version/bin/pip" install -q "optuna==$version" psycopg2-binary "sqlalchemy<2.1"
    fi
    addresses=()
    if start_postgres "$work/pg-$version"; then
        addresses+=("$POSTGRES_ADDRESS")
    fi
    "$python" "$here/exchange.py" "$parabola" "$work" ${addresses[@]+"${addresses[@]}"}
    stop_postgres
done
