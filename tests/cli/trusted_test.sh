#!/bin/bash
# `allranks judge --trusted` where there is no bubblewrap: it judges as a sandboxed judgement does, says that it is none,
# and nothing else takes its place. Then: progress on a terminal, and none in a pipe.
# Usage: trusted_test.sh ALLRANKS NVCC SOURCE FOLDER
set -eu
allranks=$1 nvcc=$2 source=$3 folder=$4
fail() {
  echo "FAIL: $*" >&2
  exit 1
}
rm -rf "$folder" && mkdir -p "$folder/tools" "$folder/tmp" && cd "$folder"
export TMPDIR=$folder/tmp
unset ALLRANKS_PROBLEMS ALLRANKS_PROFILES
export ALLRANKS_CACHE=$folder/cache
PATH=$(dirname "$nvcc"):$PATH
problem=$source/problems/collective/allreduce_one_shot
# Every program but bwrap.
cp -rs /usr/bin/. tools/ && rm -f tools/bwrap
judge() { # FILE [OPTIONS]: without bwrap
  local file=$1
  shift
  env PATH="$folder/tools:$(dirname "$nvcc")" "$allranks" judge "$problem" --solution "$file" --seed 1 "$@"
}

code=0
judge "$problem/reference.cu" --visible >out 2>err || code=$?
((code == 70)) || fail "without a sandbox it ended with $code"
grep -q 'bubblewrap' out && grep -q 'judge --trusted' out || fail "the refusal does not name the remedy: $(cat out err)"

judge "$problem/reference.cu" --trusted --json >trusted.json 2>err || fail "the reference does not pass: $(cat trusted.json err)"
grep -q -- '--trusted' err && grep -q 'cannot be shown to others' err || fail "stderr does not say what it is: $(cat err)"
grep -q '"trusted":true' trusted.json || fail "the JSON does not say that it is trusted"
"$allranks" judge "$problem" --solution "$problem/reference.cu" --seed 1 --json >sandboxed.json 2>err ||
  fail "the reference does not pass in a sandbox: $(cat err)"
grep -q '"trusted":false' sandboxed.json || fail "a sandboxed judgement says that it is trusted"
grep -q $'\x1b' err && fail "progress in a file"
# The same to the nanosecond; what it cost is at the end of the line.
same() { sed -e 's/"cost":{[^}]*{[^}]*}[^}]*}//' -e 's/"trusted":[a-z]*//' "$1"; }
cmp <(same trusted.json) <(same sandboxed.json) || fail "the judgements differ"
# Built once more, not taken from what was built without a sandbox.
grep -q '"build_cached":false' sandboxed.json || fail "a sandboxed judgement took a build of a trusted one"

code=0
judge "$problem/controls/no_wait.cu" --trusted >out 2>err || code=$?
((code == 1)) && grep -q '^allreduce_one_shot: race.*judged without a sandbox' out || fail "no_wait ended with $code: $(cat out err)"
# A cache that somebody has thinned out is filled again.
rm -r cache/modules
judge "$problem/reference.cu" --trusted --visible >out 2>err || fail "without modules in the cache: $(cat out err)"
echo 'no C++' >bad.cu
code=0
judge bad.cu --trusted >out 2>err || code=$?
((code == 1)) && grep -q 'compile_error' out || fail "no compiler's error: $(cat out err)"

code=0
env PATH="$folder/tools:$(dirname "$nvcc")" "$allranks" run --models nop --problems flag_pingpong --out run >out 2>err || code=$?
((code == 2)) && grep -q 'bubblewrap' err || fail "run does not refuse: $(cat out err)"
code=0
"$allranks" run --models nop --problems flag_pingpong --out run --trusted >out 2>err || code=$?
((code == 2)) || fail "run takes --trusted"
env PATH="$folder/tools" "$allranks" doctor >out 2>&1 || true
grep -q 'judge --trusted' out || fail "doctor does not name it: $(cat out)"
left=$(ls -A tmp)
[[ -z $left ]] || fail "files are left: $left"

# On a terminal: a line with cases and verdicts, as soon as a judgement takes long; this one takes as long as it likes.
TERM=xterm script -qec "'$allranks' judge '$problem' --solution '$problem/reference.cu' --seed 1 --cpu-seconds 3600 \
  --instructions 1000000000000 --schedules 1000000" terminal </dev/null >/dev/null 2>&1 &
terminal=$!
for ((i = 0; i < 3000; i++)); do
  grep -qa 'judging: [0-9]*/[0-9]* cases, [0-9]* pass' terminal 2>/dev/null && break
  kill -0 "$terminal" 2>/dev/null || break
  sleep 0.1
done
kill "$terminal" 2>/dev/null || true
wait "$terminal" 2>/dev/null || true
grep -qa 'judging: [0-9]*/[0-9]* cases, [0-9]* pass' terminal || fail "no progress on a terminal: $(tail -c 400 terminal)"
# A refusal stands in a line of its own: progress is erased before. The run.json is read once the progress is there.
mkdir broken && echo '{' >broken/run.json
cat >wait.cpp <<'END'
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>

extern "C" int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  while (std::strstr(path, "broken/run.json") != nullptr && access("go", F_OK) != 0) usleep(10'000);
  using Open = int (*)(const char*, int, ...);
  return reinterpret_cast<Open>(dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}
END
g++ -shared -fPIC -o wait.so wait.cpp -ldl
TERM=xterm script -qefc "env LD_PRELOAD='$folder/wait.so' ASAN_OPTIONS=verify_asan_link_order=0 '$allranks' report broken" \
  refused </dev/null >/dev/null 2>&1 &
terminal=$!
for ((i = 0; i < 3000; i++)); do
  grep -qa 'writing the report' refused 2>/dev/null && break
  kill -0 "$terminal" 2>/dev/null || break
  sleep 0.1
done
touch go
wait "$terminal" || true
grep -qa 'writing the report' refused || fail "no progress of a report: $(<refused)"
grep -qa $'\x1b\[2Kallranks: .*run\.json' refused || fail "a refusal behind progress: $(cat -v refused)"
cd / && rm -rf "$folder"
echo "passed"
