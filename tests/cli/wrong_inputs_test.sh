#!/bin/bash
# What is said of wrong input: every row of wrong_inputs.tsv is run in a folder of its own, two at a time. Its exit code
# must be the row's; what it says must fit all expressions of the row (joined by &&); where the usage is wrong no program
# has begun to run (the programs of the rows would make a file `ran`). $PROFILES is the folder of the installed profiles.
# Usage: wrong_inputs_test.sh ALLRANKS TABLE FOLDER [PATTERN]    PATTERN: only the rows whose id fits
set -u
export LC_ALL=C.UTF-8
allranks=$1 table=$2 folder=$3 pattern=${4:-}
unset ALLRANKS_PROFILES ALLRANKS_PROBLEMS ALLRANKS_MODELS
PROFILES=$(dirname "$(dirname "$allranks")")/share/allranks/profiles
export PROFILES
rm -rf "$folder" && mkdir -p "$folder/bin" "$folder/results" && cd "$folder" || exit 1
ln -s "$allranks" bin/allranks
PATH=$folder/bin:$PATH

# run_row ID SETUP ARGUMENTS CODE EXPRESSIONS: leaves results/ID, which is empty if all is well.
run_row() {
  local id=$1 setup=$2 arguments=$3 code=$4 expressions=$5 said got expression wrong=
  mkdir "$folder/$id" && cd "$folder/$id" || exit 1
  [[ $setup == - ]] && setup=:
  said=$(timeout 60 bash -c "$setup
allranks $arguments" 2>&1 </dev/null | tr -d '\0'; exit "${PIPESTATUS[0]}")
  got=$?
  ((got == code)) || wrong="exit code $got, not $code"
  while [[ -n $expressions ]]; do
    expression=${expressions%% && *}
    [[ $expression == "$expressions" ]] && expressions= || expressions=${expressions#* && }
    grep -qE -e "$expression" <<<"$said" || wrong+="; nothing fits $expression"
  done
  if ((code == 2)) && [[ -e ran ]]; then wrong+="; the program was run"; fi
  [[ -z $wrong ]] || printf 'FAIL %s: allranks %s: %s\n  it said: %s\n' "$id" "$arguments" "${wrong#; }" \
    "${said:0:400}" >"$folder/results/$id"
}

rows=0
declare -A codes
while IFS=$'\t' read -r id setup arguments code expressions _; do
  if [[ $id == id || -n $pattern && ! $id =~ $pattern ]]; then continue; fi
  while (($(jobs -rp | wc -l) >= 2)); do wait -n; done
  run_row "$id" "$setup" "$arguments" "$code" "$expressions" &
  rows=$((rows + 1))
  codes[$code]=$((${codes[$code]:-0} + 1))
done <"$table"
wait
cd "$folder/results" || exit 1
failed=$(find . -type f | wc -l)
((failed == 0)) || cat ./*
cd / && rm -rf "$folder"
for code in "${!codes[@]}"; do echo "exit code $code: ${codes[$code]} rows"; done
echo "$rows rows, $failed failed"
((rows > 0 && failed == 0))
