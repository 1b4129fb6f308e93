#!/bin/bash
# `allranks doctor`: where everything is there, where nothing is on PATH, and without a word about keys.
# Usage: doctor_test.sh ALLRANKS NVCC
set -u
allranks=$1
fail() { echo "FAIL $*"; exit 1; }
PATH=$(dirname "$2"):$PATH
said=$(OPENAI_API_KEY=not-for-the-screen "$allranks" doctor) || fail "exit code $?: $said"
echo "$said"
grep -q '^ok  *nvcc  *13\.' <<<"$said" || fail "nvcc is not found"
grep -q '^judge: works' <<<"$said" || fail "judge does not work"
[[ $said == *OPENAI_API_KEY* && $said != *not-for-the-screen* ]] || fail "a key is shown, or not named"
(($(awk 'length > 120' <<<"$said" | wc -l) < 3)) || fail "the lines are long"
json=$(OPENAI_API_KEY=not-for-the-screen "$allranks" doctor --json) || fail "--json"
[[ $json == *'"judge": true'* && $json != *not-for-the-screen* ]] || fail "$json"

# Nothing is there. What is missing is named with its remedy, and the answer is no.
said=$(env -i CUDA_HOME=/nonexistent PATH=/nonexistent "$allranks" doctor)
code=$?
((code == 1)) || fail "exit code $code without a PATH: $said"
for line in '^missing  nvcc' 'remedy: install the CUDA toolkit' '^missing  g++' '^missing  bwrap' 'apt install bubblewrap' \
  '^exec, check: works' '^judge: does not work' '^none  *cache  *there is no HOME'; do
  grep -q "$line" <<<"$said" || fail "no $line in: $said"
done
"$allranks" doctor everything >/dev/null 2>&1
(($? == 2)) || fail "an argument is not wrong usage"
echo PASS
