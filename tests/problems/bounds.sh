#!/usr/bin/env bash
# The instructions of a judgement decide whether it is `timeout`, the same in every run.
#   bounds.sh ALLRANKS SOURCE_DIR
set -euo pipefail
allranks=$1
source=$2
judge() {
  "$allranks" judge flag_pingpong --solution "$source/problems/p2p/flag_pingpong/reference.cu" \
    --seed 1 --json "$@" | grep -o '"verdict":"[a-z_]*"' | head -n 1
}
expect() {
  local got
  got=$(judge "${@:2}" || true)
  if [[ $got != "\"verdict\":\"$1\"" ]]; then
    echo "expected $1 of ${*:2}, got $got" >&2
    exit 1
  fi
}
expect pass
# Its windows take some ten million.
expect timeout --instructions 1000000
expect timeout --instructions 1000000 -j 2
# A machine with a fault: the problem is judged on it, and a name that does not exist is refused.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/p2p"
cp -r "$source/problems/p2p/flag_pingpong" "$folder/p2p"
with_fault() {
  sed "s/^\[run\]/[run]\nfaults = [\"$1\"]/" "$source/problems/p2p/flag_pingpong/problem.toml" \
    >"$folder/p2p/flag_pingpong/problem.toml"
  "$allranks" judge "$folder/p2p/flag_pingpong" --seed 1 \
    --solution "$source/problems/p2p/flag_pingpong/reference.cu" >"$folder/out" 2>&1
}
with_fault gpu:gpu0=0.5
if with_fault rank:1=dead || with_fault gpu; then
  echo "a fault that no problem can have is taken" >&2
  exit 1
fi
grep -q "faults" "$folder/out"
echo "passed"
