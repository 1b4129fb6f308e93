#!/bin/bash
# Runs a program in which nobody ever acts again, but asks. Requires that the node says so, with what
# every thread is in, that the program then still runs, and that it ends when it is told to.
# Usage: expect_idle.sh ALLRANKS [OPTION OF EXEC]... -- PROGRAM ARGUMENTS...
set -u
export LC_ALL=C
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$1" exec "${@:2}" >"$log" 2>&1 &
pid=$!
for _ in $(seq 1200); do
  if grep -q 'everybody has only waited' "$log" || ! kill -0 "$pid" 2>/dev/null; then break; fi
  sleep 0.2
done
said=$(grep -A 100 'everybody has only waited' "$log")
running=$(kill -0 "$pid" 2>/dev/null && echo yes)
kill -TERM "$pid" 2>/dev/null
wait "$pid"
code=$?
cat "$log"
[ -n "$said" ] || { echo "FAIL nothing was said"; exit 1; }
grep -q '^  thread 1: ' <<<"$said" || { echo "FAIL it does not name the threads"; exit 1; }
[ -n "$running" ] || { echo "FAIL it has ended by itself, with $code"; exit 1; }
[ "$code" -ne 0 ] || { echo "FAIL exit code 0"; exit 1; }
echo "PASS it was said, and ended with $code"
