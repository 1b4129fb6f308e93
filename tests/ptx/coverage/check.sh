#!/usr/bin/env bash
# check.sh ALLRANKS PERCENT FILE|FOLDER...: all instruction forms of the files, and of the programs in
# the folders, are parsed, and at least PERCENT of them executable; the rest is listed.
set -euo pipefail
allranks=$1 percent=$2
shift 2
files=()
for place in "$@"; do
  if [[ -d $place ]]; then
    while IFS= read -r file; do files+=("$file"); done < <(find "$place" -type f -executable | sort)
  else
    files+=("$place")
  fi
done
exec "$allranks" ptx --coverage --min-executable "$percent" "${files[@]}"
