#!/bin/bash
# Runs a program on the node twice: it must succeed, and the second run must be the same in virtual time.
#
# Usage: same_twice.sh ALLRANKS FOLDER [OPTION OF EXEC]... -- PROGRAM ARGUMENTS...
set -u
allranks=$1 folder=$2
shift 2
rm -rf "$folder" && mkdir -p "$folder" || exit 1
for run in 1 2; do
  "$allranks" exec --stats-json "$folder/$run.json" "$@" >"$folder/$run.txt" 2>&1 ||
    { cat "$folder/$run.txt"; echo "FAIL run $run: exit code $?"; exit 1; }
done
cat "$folder/1.txt"
grep -q '"deterministic": true' "$folder/1.json" || { echo "FAIL not deterministic"; exit 1; }
cmp "$folder/1.json" "$folder/2.json" || { echo "FAIL the runs differ"; exit 1; }
