#!/usr/bin/env bash
# `problems check --changed` judges what has changed, and nothing else.
#   changed.sh ALLRANKS
set -euo pipefail
allranks=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ALLRANKS_CACHE=${ALLRANKS_CACHE:-$folder/cache}

check() { "$allranks" problems check "$folder/p2p/tried" -j 2 "$@" >"$folder/out" 2>&1; }
says() {
  if ! grep -qF -- "$1" "$folder/out"; then
    echo "expected '$1' of: $2" >&2
    cat "$folder/out" >&2
    exit 1
  fi
}
"$allranks" problems new p2p/tried --problems-dir "$folder" >/dev/null
check --update
# Not recorded yet: judged.
check --changed --sample 0 --record
says "reference" "the first run"
check --changed --sample 0
says "tried: unchanged since it passed, not judged" "an unchanged problem"
check --changed --sample 100000
says "tried: unchanged since it passed: only its reference is judged" "an unchanged problem"
says "reference" "an unchanged problem"
if grep -q "ok *mutant" "$folder/out"; then
  echo "mutants of an unchanged problem are judged" >&2
  exit 1
fi
# Every day is the day of a sample.
check --changed --sample 1
says "tried: unchanged, judged as a sample" "a sample"
says "reference" "a sample"
# One that passed by other sources of the judge is judged like an unchanged one, or whole.
sed -i 's/"sources": "[0-9a-f]*"/"sources": "other"/' "$folder/checked.json"
check --changed --sample 100000
says "tried: unchanged (the judge has changed) since it passed: only its reference" "another judge"
# Its reference alone is no whole check: the record stays as it is.
check --changed --sample 100000 --record
check --changed --sample 0 --only again
says "reference again" "another judge, nothing left out"
# A record is of all items.
if check --record --every 2; then
  echo "--record takes half a check" >&2
  exit 1
fi
says "--record needs all items" "half a check"
# What only prompts show does not matter to the judge.
check --changed --sample 0 --record
echo "More." >>"$folder/p2p/tried/statement.md"
check --changed --sample 0
says "tried: unchanged since it passed, not judged" "a changed statement"
# A changed problem is judged, and one that fails is no longer in the record.
echo 'not C++' >>"$folder/p2p/tried/reference.cu"
if check --changed --record --sample 0; then
  echo "a broken reference passes" >&2
  exit 1
fi
if grep -q tried "$folder/checked.json"; then
  echo "what has failed is still in the record" >&2
  exit 1
fi
echo "passed"
