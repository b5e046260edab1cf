#!/usr/bin/env bash
# Studies of ours and Optuna: opened, agreed with and continued by 3.6.1 and 5.0.0 on SQLite and, where it is installed,
# PostgreSQL; kill -9 at random moments; optuna-dashboard in headless Chromium, where that is installed.
#   run.sh [FOLDER]     the folder keeps the virtual environments between runs [default: target/optuna]
#   KILLS=50            how often each search is killed [default: 10]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../../.." && pwd)
folder=${1:-$root/target/optuna}
kills=${KILLS:-10}
. "$here/postgres.sh"

if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    echo "SKIPPED: the tests against Optuna need python3 with venv (Debian: apt-get install python3-venv)"
    exit 0
fi
mkdir -p "$folder"
work=$(mktemp -d)
chmod a+rx "$work" # the server below may run as another user
trap 'stop_postgres; rm -rf "$work"' EXIT

cd "$root"
cargo build -q --workspace --example parabola ${QDC_TUNE_FEATURES-"--features=qdc-tune/postgres"}
parabola=${CARGO_TARGET_DIR:-$root/target}/debug/examples/parabola

for version in 3.6.1 5.0.0; do
    python=$folder/optuna-$version/bin/python
    if [ ! -e "$folder/optuna-$version/complete" ]; then
        python3 -m venv --clear "$folder/optuna-$version"
        "$python" -m pip install -q --disable-pip-version-check "optuna==$version" psycopg2-binary "sqlalchemy<2.1"
        [ "$version" = 3.6.1 ] || "$python" -m pip install -q --disable-pip-version-check "optuna-dashboard==0.21.0"
        touch "$folder/optuna-$version/complete"
    fi
    addresses=()
    if start_postgres "$work/pg-$version"; then
        addresses+=("$POSTGRES_ADDRESS")
    fi
    "$python" "$here/exchange.py" "$parabola" "$work" ${addresses[@]+"${addresses[@]}"}
    stop_postgres
done

# Several programs may find an empty database at once.
starts=("$work/empty.db")
if start_postgres "$work/pg-empty"; then
    starts+=("$POSTGRES_ADDRESS")
fi
for address in "${starts[@]}"; do
    pids=()
    for _ in 1 2 3 4; do
        "$parabola" "$address" together 20 >/dev/null &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    [ "$("$parabola" "$address" together 0 --list yes | wc -l)" = 20 ] || { echo "not 20 trials in $address"; exit 1; }
done
stop_postgres
echo "four processes began ${#starts[@]} empty storages together"

for processes in 1 2; do
    "$here/kill.sh" "$parabola" "$kills" "$work/killed-$processes.db" "$processes"
    if start_postgres "$work/pg-killed-$processes"; then
        "$here/kill.sh" "$parabola" "$kills" "$POSTGRES_ADDRESS" "$processes"
        stop_postgres
    fi
done

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$chromium" ]; then
    echo "SKIPPED: the dashboard is looked at with Chromium (Debian: apt-get install chromium)"
    exit 0
fi
best=$("$parabola" "$work/shown.db" shown 30 | python3 -c 'import json, sys; print(json.load(sys.stdin)["value"])')
"$folder/optuna-5.0.0/bin/python" "$here/dashboard.py" "$work/shown.db" shown "$best" "$chromium"
