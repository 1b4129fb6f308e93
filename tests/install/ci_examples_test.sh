#!/bin/bash
# The commands of examples/ci, taken from the files and run here against an installation, on a small project of a
# user's with a race and without one. Not run, because they need their service or change the machine: `uses:` steps,
# the packages of Debian and of CUDA (steps tools, nvcc, libraries); of these, that the list of libraries is complete
# is tested here.
# Usage: ci_examples_test.sh BUILD SOURCE NVCC FOLDER
set -u
export LC_ALL=C
build=$1 source=$2 nvcc=$3 folder=$4
fail() { echo "FAIL $*"; exit 1; }
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" || exit 1
cmake --install "$build" --prefix "$folder/allranks-1.2.3" --strip >install.log || fail "cmake --install"
tar -czf allranks.tar.gz allranks-1.2.3 || fail tar

# github_step NAME: the commands of a step. gitlab_lines KEY: those of a list.
github_step() {
  awk -v name="$1" '
    /^      - / { inside = ($0 == "      - name: " name); block = 0; next }
    inside && /^        run: \|$/ { block = 1; next }
    inside && /^        run: / { sub(/^        run: /, ""); print; next }
    inside && block && /^          / { sub(/^          /, ""); print }' "$source/examples/ci/github.yml"
}
gitlab_lines() {
  awk -v key="  $1:" '
    /^  [a-z]/ { inside = ($0 == key) }
    inside && /^    - / {
      sub(/^    - /, "")
      if ($0 ~ /^\x27.*\x27$/) $0 = substr($0, 2, length($0) - 2)
      print
    }' "$source/examples/ci/gitlab.yml"
}

# Both install what the program is linked with.
mapfile -t needed < <(objdump -p allranks-1.2.3/bin/allranks | sed -n 's/^ *NEEDED *//p')
((${#needed[@]} > 5)) || fail "only ${#needed[@]} libraries"
for list in "$(github_step libraries)" "$(gitlab_lines before_script)"; do
  for library in "${needed[@]}"; do
    case $library in ld-linux* | libc.so* | libm.so* | libstdc++.so* | libgcc_s.so*) continue ;; esac  # with g++
    package=$(dpkg -S "*/x86_64-linux-gnu/$library" 2>/dev/null | sed -n 's/^\([^:]*\):.*/\1/p' | head -n 1)
    [[ -n $package ]] || fail "dpkg knows no package of $library"
    grep -qw -e "$package" <<<"$list" || fail "$package for $library is not installed: $list"
  done
done

# project NAME [DEFINITION]: a repository.
project() {
  mkdir -p "$1" && cp "$source/examples/relaxed_flag.cu" "$1/" || exit 1
  cat >"$1/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(mine LANGUAGES CXX CUDA)
find_package(AllRanks REQUIRED)
enable_testing()
add_executable(flag relaxed_flag.cu)
target_compile_options(flag PRIVATE -lineinfo)
target_compile_definitions(flag PRIVATE ${2:-RELAXED})
allranks_test(NAME flag PROGRAM flag CHECK SCHEDULES 1 DEVICES 4)
END
}
# run FOLDER COMMANDS: as the service does, in a shell of their own that ends at the first error.
run() {
  (cd "$1" && env -u ALLRANKS_PROFILES PATH="$(dirname "$nvcc"):$PATH" CMAKE_PREFIX_PATH="$folder/prefix" CUDAARCHS=90 \
    ALLRANKS_TARBALL="file://$folder/allranks.tar.gz" bash -e -o pipefail -c "$2") >"$1/log" 2>&1
}
for service in github gitlab; do
  rm -rf prefix
  if [[ $service == github ]]; then
    install=$(github_step allranks) compile=$(github_step build) check=$(github_step test) collect=$(github_step findings)
  else
    install=$(gitlab_lines before_script | sed -n '/^mkdir /,$p') collect=$(gitlab_lines after_script)
    compile=$(gitlab_lines script | grep -v '^ctest') check=$(gitlab_lines script | grep '^ctest')
  fi
  for commands in "$install" "$compile" "$check" "$collect"; do
    [[ -n $commands ]] || fail "$service: a step has no commands"
  done
  project "$service/good" FIXED
  project "$service/bad"
  run "$service/good" "$install" || fail "$service, allranks: $(cat "$service/good/log")"
  grep -q '^allranks [0-9]' "$service/good/log" || fail "$service: $(cat "$service/good/log")"
  mkdir -p "$service/early"  # an earlier step failed: that step is to be seen, not this one
  run "$service/early" "$collect" || fail "$service, nothing to collect: $(cat "$service/early/log")"
  for kind in good bad; do
    run "$service/$kind" "$compile" || fail "$service, build: $(cat "$service/$kind/log")"
    code=0
    run "$service/$kind" "$check" || code=$?
    said=$(cat "$service/$kind/log")
    [[ $kind == good ]] && ((code != 0)) && fail "$service, test: $said"
    [[ $kind == bad ]] && ((code == 0)) && fail "$service: the race was not found: $said"
    run "$service/$kind" "$collect" || fail "$service, findings: $(cat "$service/$kind/log")"
    [[ -s $service/$kind/findings/flag.sarif ]] || fail "$service: no flag.sarif: $(ls -R "$service/$kind/findings")"
    grep -q '<testcase name="flag"' "$service/$kind/build/junit.xml" || fail "$service: no junit.xml"
  done
  # Several files with one category are refused: each has one by its name.
  if [[ $service == github ]]; then
    python3 -c 'import json, sys
for name in sys.argv[1:]:
  (run,) = json.load(open(name))["runs"]
  assert run["automationDetails"] == {"id": "allranks/flag/"}, run.get("automationDetails")' \
      github/{good,bad}/findings/flag.sarif || fail "github: the category of flag.sarif"
  fi
  grep -q '"ruleId": "race"' "$service/bad/findings/flag.sarif" || fail "$service: no race in flag.sarif"
  if grep -q '"ruleId": "race"' "$service/good/findings/flag.sarif"; then fail "$service: a race in flag.sarif"; fi
done
echo "PASS commands of both services; not run: tools, nvcc, libraries, uses"
