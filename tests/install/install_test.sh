#!/bin/bash
# `cmake --install` into an empty folder, and what a user does with it: no path of source or build tree is inside, it
# works from any folder as an ordinary user without a HOME, after it has been moved, and from a project of the user's.
# Usage: install_test.sh BUILD SOURCE NVCC FOLDER
set -u
export LC_ALL=C
build=$1 source=$2 nvcc=$3 folder=$4
PATH=$(dirname "$nvcc"):$PATH
unset ALLRANKS_PROFILES ALLRANKS_PROBLEMS ALLRANKS_MODELS ALLRANKS_CACHE XDG_CACHE_HOME
fail() { echo "FAIL $*"; exit 1; }
rm -rf "$folder" && mkdir -p "$folder/work" || exit 1
cmake --install "$build" --prefix "$folder/first" --strip >"$folder/install.log" || fail "cmake --install"
prefix=$folder/moved
mv "$folder/first" "$prefix"
found=$(grep -rlF -e "$source" -e "$build" -e "$folder/first" "$prefix")
[[ -z $found ]] || fail "a path of this machine is in $found"

# As an ordinary user where this is root: nothing below is to need more.
chmod 777 "$folder/work"
user=()
if ((EUID == 0)); then user=(setpriv --reuid=65534 --regid=65534 --clear-groups); fi
allranks() { (cd "$folder/work" && "${user[@]}" env -u HOME "$prefix/bin/allranks" "$@" 2>&1); }
said=$(allranks --version) || fail "--version: $said"
[[ $said =~ ^allranks\ [0-9]+\.[0-9]+\.[0-9]+\ \(commit\ .*,\ node\ [0-9a-f]{12},\ wire\ [0-9]+\)$ ]] || fail "$said"
for what in "profile list" "problems list" "models" "prompt flag_pingpong" "smi" "api --missing"; do
  # shellcheck disable=SC2086
  said=$(allranks $what) || fail "allranks $what: $said"
done

examples=$prefix/share/allranks/examples
nvcc -lineinfo -o "$folder/work/relaxed" "$examples/relaxed_flag.cu" || fail nvcc
said=$(allranks exec --check -- ./relaxed)
code=$?
((code == 87)) && [[ $said == *relaxed_flag.cu:* ]] || fail "exec --check: exit code $code: $said"

solution=$prefix/share/allranks/problems/p2p/flag_pingpong/reference.cu
judge=(judge flag_pingpong --seed 1 --solution "$solution")
said=$(allranks "${judge[@]}") || fail "judge without HOME: $said"
[[ $said == *"there is no HOME"*"ALLRANKS_CACHE"* ]] || fail "it does not say that nothing is kept: $said"
mkdir -m 555 "$folder/readonly"
said=$(cd / && "${user[@]}" env HOME="$folder/readonly" "$prefix/bin/allranks" "${judge[@]}" 2>&1) ||
  fail "judge with a HOME that cannot be written: $said"
((EUID == 0 && ${#user[@]} == 0)) || [[ $(grep -c "cannot be written" <<<"$said") == 1 ]] || fail "it does not say so: $said"
said=$(cd / && "${user[@]}" env HOME="$folder/work" "$prefix/bin/allranks" "${judge[@]}" 2>&1) || fail "judge: $said"
[[ $said != *"is kept"* ]] || fail "a HOME is no reason to complain: $said"

# Without nvcc: what needs none works, what needs it says so.
said=$(cd "$folder/work" && env -i PATH=/usr/bin:/bin CUDA_HOME= "$prefix/bin/allranks" exec -- ./relaxed 2>&1) ||
  fail "exec without CUDA: $said"

# A project of the user's.
cmake -S "$source/tests/install/project" -B "$folder/project" -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLES="$examples" \
  -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES=90 >"$folder/project.log" 2>&1 &&
  cmake --build "$folder/project" >>"$folder/project.log" 2>&1 || fail "$(cat "$folder/project.log")"
said=$(ctest --test-dir "$folder/project" --output-on-failure 2>&1) && fail "the race was not found: $said"
for word in 'relaxed .*\*\*\*Failed' 'released .* Passed' 'plain .* Passed' 'relaxed_flag\.cu:[0-9]'; do
  grep -q "$word" <<<"$said" || fail "no $word: $said"
done
grep -q '"ruleId"' "$folder/project/relaxed.sarif" || fail "no findings beside the test"
cat >"$folder/wrong.cmake" <<END
cmake_minimum_required(VERSION 3.20)
find_package(AllRanks REQUIRED PATHS "$prefix")
allranks_test(NAME a PROGRAM b CHEKC)
END
said=$(cmake -P "$folder/wrong.cmake" 2>&1) && fail "a wrong word was accepted"
[[ $said == *"unknown: CHEKC"* ]] || fail "$said"

# Manual pages, if something here can read them.
pages=("$prefix"/share/man/man1/*.1)
((${#pages[@]} > 8)) || fail "only ${#pages[@]} manual pages"
if command -v groff >/dev/null; then
  said=$(groff -man -Tutf8 -ww -z "${pages[@]}" 2>&1)
  [[ -z $said ]] || fail "groff: $said"
fi
echo "PASS installed, moved, used"
