#!/bin/bash
# Waiting is free: the wall time of a wait of 100 ms of virtual time must be less than 10 % above
# that of 1 ms, or the CPU time on a machine whose cores others use. Compares the best of several
# runs, taken in turns so that a slow moment of the machine meets both; what only noise can explain
# gets more runs.
# Usage: wait_cost.sh ALLRANKS WAIT_LONG VARIANT...
set -u
export LC_ALL=C
allranks=$1 program=$2
shift 2

declare -A best cpu
# The CPU time in microseconds of all children so far.
spent() {
  awk '{ print ($16 + $17) * 10000 }' "/proc/$$/stat"
}
measure() {  # variant microseconds
  local before start output elapsed used
  before=$(spent)
  start=${EPOCHREALTIME/./}
  output=$("$allranks" exec -- "$program" "$2" "$1" 2>&1) ||
    { echo "FAIL $1, $2 us: exit code $?"; echo "$output" | head -40; exit 1; }
  elapsed=$((${EPOCHREALTIME/./} - start))
  used=$(($(spent) - before))
  [ "$elapsed" -ge "${best[$2]:-$((elapsed + 1))}" ] || best[$2]=$elapsed
  cpu[$2]=$((${cpu[$2]:-0} + used))
}
near() { [ $(($1 * 100)) -lt $(($2 * 110)) ]; }

failed=0
for variant in "$@"; do
  best=() cpu=()
  for ((run = 1; run <= 100; run++)); do
    measure "$variant" 1000
    measure "$variant" 100000
    [ $run -ge 5 ] && near "${best[100000]}" "${best[1000]}" && break
    # Ticks are coarse: the sum of many runs.
    [ $run -ge 40 ] && near "${cpu[100000]}" "${cpu[1000]}" && break
  done
  result=PASS
  [ $run -le 100 ] || { result=FAIL; failed=1; }
  echo "$result $variant: 1 ms ${best[1000]} us of wall time, 100 ms ${best[100000]} us"
done
exit $failed
