#!/bin/bash
# `exec --check` as continuous integration uses it: errors of the API, files of findings, leaks, a timeout, signals.
# Usage: ci_test.sh ALLRANKS NVCC SOURCE FOLDER
set -u
export LC_ALL=C
allranks=$1 nvcc=$2 source=$3 folder=$4
fail() { echo "FAIL $*"; exit 1; }
# has TEXT PATTERN...: each is in it.
has() {
  local pattern
  for pattern in "${@:2}"; do grep -qE -e "$pattern" <<<"$1" || fail "nothing fits $pattern in: $1"; done
}
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" || exit 1
for name in errors hangs; do
  "$nvcc" -lineinfo -Xcompiler -g -o $name "$source/tests/cli/$name.cu" || fail "nvcc $name"
done

# Good calls, and one process: the device is named, no rank. A leak is one line and does not count.
said=$("$allranks" exec --check -- ./errors 2>&1) || fail "exit code $? of a program without errors: $said"
has "$said" '^leak: the program ends with 4096 bytes of device memory in 1 allocation' 'no findings \(1 kernel, 1 block, '
if grep -qw rank <<<"$said"; then fail "a rank is named: $said"; fi
said=$("$allranks" exec --check --leaks no -- ./errors 2>&1)
[[ $said != *leak* ]] || fail "--leaks no: $said"
said=$("$allranks" exec --check --leaks full -- ./errors 2>&1)
has "$said" '^leak: ' 'device 5 allocation #1' 'suppress: leak'

# Errors of calls: the arguments, the line, and whether anybody asked.
said=$("$allranks" exec --check --findings found.sarif -- ./errors wrong 2>&1)
(($? == 87)) || fail "errors of calls do not count: $said"
has "$said" 'api_error: cudaSetDevice\(device=99\) returns cudaErrorInvalidDevice \(101\): ' \
  'api_error: cudaLaunchKernel\(Fill\(int\*\), 1x1x1 blocks of 2048x1x1 threads, 0 bytes of dynamic shared memory\) returns cudaErrorInvalidConfiguration' \
  'errors\.cu:1[0-9]' 'missing: the thread does not call cudaGetLastError after it' '2 findings: 2 api_error'
(($(grep -c 'does not call cudaGetLastError' <<<"$said") == 1)) || fail "the first error was asked for: $said"
for word in '"version": "2.1.0"' '"ruleId": "api_error"' 'tests/cli/errors.cu' '"startLine": 1[0-9]'; do
  grep -q "$word" found.sarif || fail "no $word in $(cat found.sarif)"
done
"$allranks" exec --check --findings found.xml -- ./errors wrong >/dev/null 2>&1
grep -q 'tests="2" failures="2"' found.xml || fail "$(cat found.xml)"
"$allranks" exec --check --findings found --format junit -- ./errors >/dev/null 2>&1 || fail "--format"
grep -q 'tests="1" failures="0"' found || fail "$(cat found)"
id=$(sed -nE 's/^ *suppress: (api_error [0-9a-f]+).*/\1/p' <<<"$said")
echo "$id" >suppressed
said=$("$allranks" exec --check --suppress suppressed -- ./errors wrong 2>&1) || fail "suppressed findings count: $said"
has "$said" '2 suppressed'

# Where it stands, when time is over and when somebody asks for its end.
begin=$SECONDS
said=$("$allranks" exec --timeout 3 -- ./hangs 2>&1)
(($? == 124)) || fail "exit code $? of a timeout: $said"
((SECONDS - begin < 60)) || fail "the timeout took $((SECONDS - begin)) s"
has "$said" '^allranks: --timeout 3: the program is ended; after ' 'device 0, kernel Compute\(' 'hangs\.cu:[0-9]+' 'thread 1: waiting in device_sync' \
  '^in the streams, not done:$'
queue=$(sed -n '/^in the streams/,/^on the hosts/p' <<<"$said" | sed '1d;$d')
[[ $queue == '  device 0, default stream
    kernel Compute(unsigned long long*), running
  device 0, stream 1
    kernel Compute(unsigned long long*), running
    memset of 256 bytes
    event record
    kernel Clear(unsigned long long*), 3 times
    copy of 128 bytes
    host function' ]] || fail "what is queued: $said"
for signal in TERM INT; do
  setsid env --default-signal=INT "$allranks" exec -- ./hangs >signal.log 2>&1 &
  child=$!
  for ((i = 0; i < 200; ++i)); do pgrep -P "$child" -f hangs >/dev/null && break; sleep 0.05; done
  sleep 3
  kill -$signal "$child"
  wait "$child"
  code=$?
  ((code > 128)) || fail "exit code $code after SIG$signal: $(cat signal.log)"
  has "$(cat signal.log)" "^allranks: received SIG$signal; after " 'kernel Compute\(' 'thread 1: waiting in device_sync'
done
echo PASS
