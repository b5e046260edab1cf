#!/usr/bin/env bash
# kill -9 at random moments, again and again: the study always opens, and no finished trial is lost or doubled.
#   kill.sh PARABOLA KILLS ADDRESS [PROCESSES]     PARABOLA: the example program; PROCESSES run side by side
set -euo pipefail
parabola=$1 kills=$2 address=$3 processes=${4:-1}
trials=$((kills * 6))
RANDOM=7
args=("$address" killed "$trials" --jobs 2 --batch 4 --pause 15)
state() { # number, value and parameters of finished trials, one line each
    "$parabola" "$address" killed 0 --list yes
}
before=$(mktemp) after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT
for ((i = 0; i < kills; i++)); do
    pids=()
    for ((p = 0; p < processes; p++)); do
        "$parabola" "${args[@]}" >/dev/null 2>&1 &
        pids+=($!)
    done
    sleep "0.$((RANDOM % 30 + 5))"
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    state >"$after"
    # what was finished before is finished still, bit for bit
    comm -23 "$before" "$after" | grep . && { echo "LOST after kill $i"; exit 1; }
    [ "$(cut -d' ' -f1 "$after" | sort | uniq -d | wc -l)" = 0 ] || { echo "DOUBLED after kill $i"; exit 1; }
    cp "$after" "$before"
done
"$parabola" "${args[@]}" >/dev/null
state >"$after"
[ "$(wc -l <"$after")" -ge "$trials" ] || { echo "only $(wc -l <"$after") of $trials trials in the end"; exit 1; }
echo "$kills kills, $processes process(es), $address: $(wc -l <"$after") trials, none lost, none doubled"
