#!/bin/bash
# A run that is killed (SIGKILL, at moments drawn at random) and goes on ends with the same results as
# one that nobody disturbs, and asks for nothing again that it had paid for and written down. The same
# after a full disk. The model is a provider on loopback; problem, judge and sandboxes are real.
#
#   campaign_killed.sh ALLRANKS FAKE_PROVIDER ROOT [KILLS]
#
# KILLS kills in all, at most 10 of one run. RANDOM_SEED repeats a failure.
set -u
export LC_ALL=C
allranks=$1 provider=$2 root=$3 kills=${4:-30}
problem=$root/problems/p2p/flag_pingpong
seed=${RANDOM_SEED:-$RANDOM}
RANDOM=$seed
work=$(mktemp -d)
server=
failed=0
fail() { echo "FAIL (RANDOM_SEED=$seed) $*"; failed=1; }
# shellcheck disable=SC2317  # called by the trap
leave() {
  [[ -n $server ]] && kill "$server" 2>/dev/null
  if ((failed)); then echo "files are in $work"; else rm -rf "$work"; fi
}
trap leave EXIT

# What the model says: a right answer, two wrong ones, one that is no code.
answer() { [[ -s $2 ]] || exit 1; { echo "Here is the file."; echo '```cuda'; cat "$2"; echo '```'; } >"$work/$1.txt"; }
echo 'extern "C" void launch(const Args&, cudaStream_t) {}' >"$work/nothing.cu"
answer right "$problem/reference.cu"
answer nothing "$work/nothing.cu"
answer zeros "$problem/controls/first_round_only.cu"
echo "I cannot write this kernel without knowing the hardware." >"$work/prose.txt"
"$provider" --stay --protocol openai-chat --port-file "$work/port" --log "$work/charged" --delay-ms 20..120 \
  --reply "$work/right.txt" --reply "$work/nothing.txt" --reply "$work/zeros.txt" \
  --reply "$work/prose.txt" &
server=$!
for ((i = 0; i < 100; ++i)); do [[ -s $work/port ]] && break; sleep 0.05; done
cat >"$work/models.toml" <<EOF
schema = 1
[models.fake]
protocol = "openai-chat"
endpoint = "http://127.0.0.1:$(cat "$work/port")/v1"
model = "fake"
concurrency = 3
price = { input = 1.0, cached_input = 0.5, output = 4.0 }
EOF

# run OUT: the whole campaign into OUT/run; the name of a run's last folder is part of its results.
run() {
  "$allranks" run --models fake --models-file "$work/models.toml" --problems "$problem" --samples 8 \
    --rounds 2 --seed 7 -j 2 --out "$1/run" >>"$1.log" 2>&1
}
# Everything that must be the same, by name and content.
results() {
  (cd "$1/run" && find . -type f \( -name run.json -o -name sample.json -o -name round.json \
    -o -name prompt.json -o -name request.json -o -name reply.txt -o -name source.cu \
    -o -name feedback.md \) -print0 | sort -z | xargs -0 sha256sum)
}
# Rounds whose reply is on the disk, each with its number of attempts.
paid() {
  find "$1/run" -name reply.json 2>/dev/null | sort | while read -r reply; do
    echo "$(grep -c . "$(dirname "$reply")/attempts.jsonl") $(dirname "$reply")"
  done
}

run "$work/whole" || fail "the undisturbed run: $(tail -n 5 "$work/whole.log")"
results "$work/whole" >"$work/whole.sum"
charged=$(wc -l <"$work/charged")  # by an undisturbed run
echo "undisturbed: $(wc -l <"$work/whole.sum") files, $charged requests charged"
[[ $(grep -c sample.json "$work/whole.sum") -eq 8 ]] || fail "not all of 8 samples ended"
begin=$(date +%s%N)
run "$work/again" || fail "a second undisturbed run: $(tail -n 5 "$work/again.log")"
usual=$((($(date +%s%N) - begin) / 1000000))  # ms of a run whose builds are there
results "$work/again" | cmp -s - "$work/whole.sum" || fail "a second undisturbed run differs"

total=0 again=0
for ((n = 0; total < kills && n < kills; ++n)); do
  cut=$work/cut$n
  : >"$cut.paid"
  before=$(wc -l <"$work/charged") hits=0
  for ((k = 0; k < 10 && total < kills; ++k)); do
    # In a session of its own, so that nothing but the run itself gets the signal.
    setsid "$allranks" run --models fake --models-file "$work/models.toml" --problems "$problem" \
      --samples 8 --rounds 2 --seed 7 -j 2 --out "$cut/run" >>"$cut.log" 2>&1 &
    pid=$!
    wait_ms=$((30 + RANDOM * usual / 32768 / 2))
    sleep "$(printf '%d.%03d' $((wait_ms / 1000)) $((wait_ms % 1000)))"
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    (($? == 137)) || break  # it had ended before
    total=$((total + 1)) hits=$((hits + 1))
    paid "$cut" >>"$cut.paid"
  done
  run "$cut" || fail "killed run $n does not end: $(tail -n 5 "$cut.log")"
  results "$cut" | diff "$work/whole.sum" - >"$cut.diff" ||
    fail "killed run $n has other results: $(head -n 6 "$cut.diff")"
  # A reply that was on the disk at some kill has as many attempts now as it had then.
  paid "$cut" | sort -u >"$cut.end"
  sort -u "$cut.paid" | comm -23 - "$cut.end" | grep . && fail "killed run $n paid twice"
  # By the provider's own count: each kill may lose what was under way, three requests at most.
  extra=$(($(wc -l <"$work/charged") - before - charged))
  ((0 <= extra && extra <= 3 * hits)) || fail "killed run $n was charged for $extra more"
  again=$((again + extra))
  [[ -z $(find "$cut" -name '*.part') ]] || fail "killed run $n left unfinished files"
done
echo "$total kills in $n runs of about $usual ms: the same results, $again requests under way repeated"
((total >= kills)) || fail "only $total of $kills kills met a run"

# A disk that is full in the middle of it, and room made afterwards.
full=$work/full
mkdir -p "$full/run"
if unshare -m true 2>/dev/null; then
  export -f run fail
  export allranks work problem full
  unshare -m bash -c '
    mount -t tmpfs -o size=160k none "$full/run" || exit 9
    run "$full"
    echo "code $?" >"$work/full.code"
    mount -o remount,size=64m "$full/run"
    run "$full" || echo "code after $?" >>"$work/full.code"
    cp -a "$full/run" "$work/full.copy"'
  grep -q '^code [1-9]' "$work/full.code" || fail "a full disk was not noticed: $(cat "$work/full.code")"
  grep -q 'No space left' "$full.log" || fail "nothing says that the disk was full"
  grep 'code after' "$work/full.code" && fail "it does not go on after a full disk"
  mkdir "$work/after" && mv "$work/full.copy" "$work/after/run"
  results "$work/after" | diff "$work/whole.sum" - >"$full.diff" ||
    fail "other results after a full disk: $(head -n 6 "$full.diff")"
  echo "a full disk: the same results after it"
else
  echo "a full disk: not tried, no mounts allowed here"
fi
exit "$failed"
