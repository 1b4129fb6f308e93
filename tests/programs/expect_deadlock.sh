#!/bin/bash
# Runs a program that deadlocks. Requires exit code 86, a report that names the source line marked
# `// expect: waits here`, and that it came about as fast as the machine is: within two seconds, or
# thirty times what it takes to start a program that does nothing at all.
# Usage: expect_deadlock.sh ALLRANKS PROGRAM SOURCE [LAUNCHER...]
set -u
export LC_ALL=C
allranks=$1 program=$2 source=$3
launcher=("${@:4}")

# The mark stands in the program or, if there is none, in a header of its own.
marks() { grep -Hn '// expect: waits here' "$@" 2>/dev/null; }
marked=$(marks "$source")
if [ -z "$marked" ]; then
  mapfile -t headers < <(sed -n 's/^#include "\(.*\)"/\1/p' "$source")
  marked=$(marks "${headers[@]/#/"$(dirname "$0")/"}")
fi
if [ -z "$marked" ] || [ "$(wc -l <<<"$marked")" -ne 1 ]; then
  echo "FAIL $source: needs exactly one marked line, has: $marked"
  exit 1
fi
place=$(basename "${marked%%:*}"):$(cut -d: -f2 <<<"$marked")

start=${EPOCHREALTIME/./}
report=$(timeout 240 "$allranks" exec -- "${launcher[@]}" "$program" 2>&1)
code=$?
milliseconds=$(((${EPOCHREALTIME/./} - start) / 1000))

fail() {
  echo "FAIL $(basename "$program"): $1. The report:"
  echo "$report" | head -60
  exit 1
}
[ $code -eq 86 ] || fail "exit code $code, expected 86"
grep -qE "(^|[^0-9A-Za-z_])${place//./\\.}([^0-9]|\$)" <<<"$report" ||
  fail "$place is not in the report"
if [ $milliseconds -ge 2000 ]; then
  start=${EPOCHREALTIME/./}
  "$allranks" exec -- true
  idle=$(((${EPOCHREALTIME/./} - start) / 1000))
  [ $milliseconds -lt $((30 * idle)) ] ||
    fail "$milliseconds ms of wall time, where nothing at all takes $idle ms"
fi
echo "PASS $(basename "$program"): $place in $milliseconds ms"
