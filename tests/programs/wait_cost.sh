#!/bin/bash
# Waiting is free: the wall time of a wait of 100 ms of virtual time must be less than 10 % above
# that of 1 ms. Compares the best of several runs, taken in turns so that a slow moment of the
# machine meets both; what only noise can explain gets more runs.
# Usage: wait_cost.sh ALLRANKS WAIT_LONG VARIANT...
set -u
export LC_ALL=C
allranks=$1 program=$2
shift 2

declare -A best
measure() {  # variant microseconds
  local start=${EPOCHREALTIME/./} output elapsed
  output=$("$allranks" exec -- "$program" "$2" "$1" 2>&1) ||
    { echo "FAIL $1, $2 us: exit code $?"; echo "$output" | head -40; exit 1; }
  elapsed=$((${EPOCHREALTIME/./} - start))
  [ "$elapsed" -ge "${best[$2]:-$((elapsed + 1))}" ] || best[$2]=$elapsed
}

failed=0
for variant in "$@"; do
  best=()
  for ((run = 1; run <= 100; run++)); do
    measure "$variant" 1000
    measure "$variant" 100000
    [ $run -ge 5 ] && [ $((best[100000] * 100)) -lt $((best[1000] * 110)) ] && break
  done
  result=PASS
  [ $run -le 100 ] || { result=FAIL; failed=1; }
  echo "$result $variant: 1 ms ${best[1000]} us of wall time, 100 ms ${best[100000]} us"
done
exit $failed
