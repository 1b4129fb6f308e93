#!/bin/bash
# Kills the node while a program waits in a call. The program must get its error within a second of
# wall time, and `allranks exec` must say so by exit code 70.
# Usage: node_killed.sh ALLRANKS PROGRAM
set -u
allranks=$1 program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
timeout 240 "$allranks" exec -- "$program" >"$work/out" 2>"$work/err" &
runner=$!
for _ in $(seq 200); do
  grep -q waiting "$work/out" && break
  sleep 0.05
done
sleep 0.3
supervisor=$(pgrep -P "$runner" | head -1)
node=$(for pid in $(pgrep -P "$supervisor"); do
  grep -q allranks-node "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
done)
[ -n "$node" ] || { echo "FAIL no node found"; kill "$runner"; cat "$work/err"; exit 1; }
start=${EPOCHREALTIME/./}
kill -KILL "$node"
wait "$runner"
code=$?
milliseconds=$(((${EPOCHREALTIME/./} - start) / 1000))
cat "$work/out" "$work/err"
grep -q PASS "$work/out" || { echo "FAIL the program did not see the error"; exit 1; }
[ $code -eq 70 ] || { echo "FAIL exit code $code, expected 70"; exit 1; }
[ $milliseconds -lt 1500 ] || { echo "FAIL $milliseconds ms"; exit 1; }
echo "$milliseconds ms from the kill to the end of it all"
