#!/bin/bash
# The same twice: runs a program N times alone and N times beside two busy loops, and requires the
# same statistics, byte for byte (virtual nanoseconds, every kernel's start and end, instructions),
# and "deterministic": true every time.
# Usage: same_twice.sh ALLRANKS PROGRAM N [ARGUMENT...]
set -u
allranks=$1 program=$2 runs=$3
shift 3

work=$(mktemp -d)
loops=()
cleanup() {
  for pid in "${loops[@]}"; do kill "$pid" 2>/dev/null; done
  rm -rf "$work"
}
trap cleanup EXIT

fail() {
  echo "FAIL $(basename "$program"): $1"
  [ -s "$work/output" ] && tail -20 "$work/output"
  exit 1
}

first=
for load in alone loaded; do
  if [ $load = loaded ]; then
    # Bounded, so that nothing is left behind even if this script is killed.
    for _ in 1 2; do
      timeout 300 bash -c 'while :; do :; done' &
      loops+=($!)
    done
  fi
  for ((run = 1; run <= runs; run++)); do
    rm -f "$work/stats"
    # Patience: a core may be away for seconds where others use it.
    "$allranks" exec --patience 60 --stats-json "$work/stats" -- "$program" "$@" >"$work/output" 2>&1 ||
      fail "$load, run $run: exit code $?"
    grep -qE '"deterministic": *true' "$work/stats" || fail "$load, run $run: not deterministic"
    now=$(grep -oE '"virtual_ns": *[0-9.eE+]+' "$work/stats" | tr -d ' \n')
    [ -n "$now" ] || fail "$load, run $run: no virtual_ns in the statistics"
    [ "$now" = "${first:=$now}" ] || fail "$load, run $run: $now, the first run had $first"
    [ -e "$work/first" ] || cp "$work/stats" "$work/first"
    cmp -s "$work/first" "$work/stats" || fail "$load, run $run: the statistics differ from the first run's"
  done
done
echo "PASS $(basename "$program"): $((2 * runs)) runs with ${first//\"/}"
