#!/usr/bin/env bash
# Compares two builds byte for byte: for a change that must not change behaviour.
#
#   tools/same_behaviour.sh BEFORE AFTER [EVERY]
#
# BEFORE and AFTER are build folders (build/release and a copy of an older one). Runs the command of
# every `allranks exec` test of AFTER with both binaries under --check, and judges every problem's
# reference and alternates with both under one seed. Statistics, findings, exit codes and verdicts
# must be equal; only the cost of a judgement may differ. EVERY N runs only every N-th program.
set -euo pipefail
if (($# < 2)); then
  sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
tests=$(realpath "$2")
every=${3:-1}
root=$(realpath "$(dirname "$0")/..")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Each binary with what it needs beside it, as if installed.
stage() {
  mkdir -p "$scratch/$1"
  cp -a "$2/bin" "$2/lib" "$2/share" "$scratch/$1/"
}
stage before "$1"
stage after "$2"
before=$scratch/before
after=$scratch/after
export scratch before after root

# run_program NUMBER COMMAND...: the command of a test with each binary in turn.
run_program() {
  local number=$1 side binary
  shift
  local rest=("${@:3}")  # behind "allranks exec"
  for side in before after; do
    binary=${!side}/bin/allranks
    local to=$scratch/$number.$side
    mkdir -p "$to"
    local code=0
    timeout 300 "$binary" exec --check --stats-json "$to/stats" --findings "$to/findings" \
      "${rest[@]}" >/dev/null 2>&1 </dev/null || code=$?
    echo "$code" >"$to/code"
  done
  if ! diff -rq "$scratch/$number.before" "$scratch/$number.after" >/dev/null; then
    echo "DIFFERS: allranks exec ${rest[*]}"
    diff -r "$scratch/$number.before" "$scratch/$number.after" | head -n 12 || true
  else
    echo "same"
  fi
  rm -rf "$scratch/$number.before" "$scratch/$number.after"
}

run_candidate() {
  local candidate=$1 slug side text=()
  slug=$(realpath --relative-to="$root/problems" "$candidate")
  slug=$(cut -d/ -f2 <<<"$slug")
  for side in before after; do
    # What it cost is the machine's affair.
    text+=("$("${!side}/bin/allranks" judge "$slug" --solution "$candidate" --seed same --json \
      2>&1 </dev/null | sed 's/"cost":{[^}]*}//')") || true
  done
  if [[ ${text[0]} != "${text[1]}" ]]; then
    echo "DIFFERS: judge $slug $candidate"
    diff <(tr ',' '\n' <<<"${text[0]}") <(tr ',' '\n' <<<"${text[1]}") | head -n 12 || true
  else
    echo "same"
  fi
}
export -f run_program run_candidate

# "Test command: A "B" "C"": a shell can read it.
mapfile -t commands < <(ctest --test-dir "$tests" -N -V |
  sed -nE 's/^[0-9]+: Test command: (.*\/bin\/allranks "exec" .*)/\1/p' |
  awk -v every="$every" 'NR % every == 0')
mapfile -t candidates < <(
  find "$root/problems" \( -name reference.cu -o -path '*/alternates/*.cu' \) | sort)
echo "${#commands[@]} programs, ${#candidates[@]} candidates"
if ((${#commands[@]} == 0)); then
  echo "$tests has no tests that run programs" >&2
  exit 1
fi
{
  for i in "${!commands[@]}"; do printf 'run_program %d %s\0' "$i" "${commands[i]}"; done
  for candidate in "${candidates[@]}"; do printf 'run_candidate %q\0' "$candidate"; done
} | xargs -0 -P "$(nproc)" -I{} bash -c '{}' >"$scratch/log"
differ=$(grep -c '^DIFFERS' "$scratch/log" || true)
grep -v '^same' "$scratch/log" || true
echo "$(grep -c '^same' "$scratch/log" || true) same, $differ differ"
((differ == 0))
