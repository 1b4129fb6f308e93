#!/bin/bash
# Runs a program on the node several times: it must succeed, and every run must be the same in virtual time.
#
# Usage: same_times.sh TIMES ALLRANKS FOLDER [OPTION OF EXEC]... -- PROGRAM ARGUMENTS...
set -u
times=$1 allranks=$2 folder=$3
shift 3
rm -rf "$folder" && mkdir -p "$folder" || exit 1
for run in $(seq "$times"); do
  "$allranks" exec --stats-json "$folder/$run.json" "$@" >"$folder/$run.txt" 2>&1 ||
    { cat "$folder/$run.txt"; echo "FAIL run $run: exit code $?"; exit 1; }
  grep -q '"deterministic": true' "$folder/$run.json" || { echo "FAIL run $run is not deterministic"; exit 1; }
  cmp "$folder/1.json" "$folder/$run.json" || { echo "FAIL run $run differs"; exit 1; }
done
cat "$folder/1.txt"
echo "$times runs are the same"
