#!/bin/bash
# `allranks exec --check` on the example of the README: right sums, a finding with both lines and the
# remedy, the same in every run; and nothing once the remedy is taken. Host code that waits for nothing
# is found, too.
#
# Usage: check_test.sh ALLRANKS NVCC ROOT FOLDER
set -u
allranks=$1 nvcc=$2 root=$3 folder=$4
rm -rf "$folder" && mkdir -p "$folder" && cd "$root" || exit 1
failed=0
fail() { echo "FAIL $*"; failed=1; }
compile() {
  "$nvcc" -cudart shared -lineinfo -gencode 'arch=compute_90,code=[sm_90,compute_90]' "$@" \
    examples/relaxed_flag.cu || exit 1
}
check() { # EXIT OUTPUT OPTIONS... -- PROGRAM
  local expected=$1 output=$2
  shift 2
  "$allranks" exec --check "$@" >"$output" 2>&1
  local code=$?
  [[ $code -eq $expected ]] || { fail "exit code $code, not $expected: exec --check $*"; cat "$output"; }
}
says() { grep -qF -- "$2" "$1" || { fail "$1 does not say: $2"; cat "$1"; }; }

store=$(grep -n 'inbox\[peer\]\[rank' examples/relaxed_flag.cu | cut -d: -f1)
load=$(grep -n 'sum +=' examples/relaxed_flag.cu | cut -d: -f1)
flag=$(grep -n 'st.relaxed' examples/relaxed_flag.cu | cut -d: -f1)

compile -o "$folder/broken"
check 87 "$folder/1.txt" --findings "$folder/1.json" --stats-json "$folder/stats.json" -- "$folder/broken"
says "$folder/1.txt" "0 of 4096 sums are wrong"
says "$folder/1.txt" "examples/relaxed_flag.cu:$store"
says "$folder/1.txt" "examples/relaxed_flag.cu:$load"
says "$folder/1.txt" "examples/relaxed_flag.cu:$flag"
says "$folder/1.txt" "st.release.sys"
says "$folder/1.txt" "allranks: 1 finding: 1 race"
says "$folder/1.json" '"kind": "race"'
says "$folder/1.json" "\"line\": $load"
says "$folder/stats.json" '"findings": ['
check 87 "$folder/2.txt" --findings "$folder/2.json" -- "$folder/broken"
cmp "$folder/1.json" "$folder/2.json" || fail "a second run found something else"
check 87 "$folder/3.txt" --schedule 5 --findings "$folder/3.json" -- "$folder/broken"
says "$folder/3.json" '"schedule": 5'

# Who does not ask is told nothing.
"$allranks" exec --stats-json "$folder/plain.json" -- "$folder/broken" >"$folder/plain.txt" 2>&1 ||
  fail "exec without --check"
grep -q findings "$folder/plain.txt" "$folder/plain.json" && fail "findings that nobody looked for"

compile -DFIXED -o "$folder/fixed"
for schedule in 0 1 2 3; do
  check 0 "$folder/4.txt" --schedule $schedule -- "$folder/fixed"
  says "$folder/4.txt" "allranks: no findings"
done

# What the host touches of pinned and managed memory (the correct modes are tests of the program).
"$nvcc" -cudart shared -gencode 'arch=compute_90,code=[sm_90,compute_90]' -Itests/programs \
  -o "$folder/host_waits" tests/programs/memory/host_waits.cu || exit 1
for mode in read_copy read_kernel late write_source managed; do
  check 87 "$folder/host.txt" -- "$folder/host_waits" $mode
  says "$folder/host.txt" " at main+0x"
  says "$folder/host.txt" "cudaStreamSynchronize()"
done
exit $failed
