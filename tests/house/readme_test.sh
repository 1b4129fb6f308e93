#!/bin/bash
# Holds the documents to their word. Commands in README.md and docs/*.md stand in these kinds of blocks:
#
#   ```sh test   is run here, from the repository's root, with build/release replaced by the build
#                folder of this test; each command must exit with 0, or with N where the line ends in
#                `# exits with N`
#   ```sh test slow   the same, by a test of its own, since it takes minutes. Here and above runs/ and
#                docs/images/, where commands write to, are replaced by folders of the build
#   ```sh tutorial   is run in a fresh folder by tests/site/tutorial.py
#   ```sh        is not run here, so it may hold only what .ci/run does: installing, building, testing
#
# Any other block marked as shell is refused. A command may go on behind a `\` at the end of a line.
# Files that the text names must exist, in CONTRIBUTING.md, too.
#
# Usage: readme_test.sh lint ROOT
#        readme_test.sh run|slow ROOT BUILD NVCC DOCUMENT...
set -u
export LC_ALL=C
mode=$1 root=$2
cd "$root" || exit 1
if [[ $mode == lint ]]; then
  documents=(README.md docs/*.md docs/tutorials/*.md)
else
  build=$3 nvcc=$4
  documents=("${@:5}")
fi
texts=("${documents[@]}" CONTRIBUTING.md)
failed=0
fail() { echo "FAIL $*"; failed=1; }

# Prints "file:line<TAB>command" for each command in blocks whose info string is exactly $1.
commands() {
  awk -v wanted="$1" '
    /^[ ]*```/ {
      info = $0; sub(/^[ ]*```/, "", info)
      inside = !inside
      take = inside && info == wanted
      next
    }
    take && NF && $1 !~ /^#/ {
      if (command == "") place = FILENAME ":" FNR
      line = $0
      if (sub(/[ ]*\\$/, "", line)) { command = command line " "; next }
      print place "\t" command line
      command = ""
    }' "${documents[@]}"
}

lint() {
  local place line command package info path
  while IFS=: read -r place line info; do
    case ${info#"${info%%[!\` ]*}"} in
      sh | 'sh test' | 'sh test slow' | 'sh tutorial') ;;
      sh* | bash* | console* | zsh*)
        fail "$place:$line: mark commands with \`\`\`sh test, or \`\`\`sh if .ci/run does the same" ;;
    esac
  done < <(grep -nHE '^ *```.' "${documents[@]}")

  while IFS=$'\t' read -r place command; do
    case $command in
      'sudo apt-get install '*)
        for package in $(sed -n '/^packages=(/,/^)/p' .ci/run | grep -v '[()]'); do
          [[ " $command " == *" $package "* ]] || fail "$place: .ci/run also installs $package"
        done ;;
      'cmake --preset '* | 'cmake --build --preset '* | 'ctest --preset '*)
        local preset=${command#*--preset }
        preset=${preset%% *}
        grep -q "\"name\": \"$preset\"" CMakePresets.json || fail "$place: no preset '$preset'" ;;
      .ci/run | '.ci/run --quick'* | '.ci/run --part '*) ;;
      *) fail "$place: .ci/run does not do this; put it into a \`\`\`sh test block: $command" ;;
    esac
  done < <(commands sh)
  # Files that the text sends its readers to.
  while IFS=: read -r place line path; do
    path=${path//\`/}
    [[ -e $path ]] || fail "$place:$line: there is no $path"
  done < <(grep -noHE '`(src|tests|fuzz|bench|profiles|docs|cmake|tools|share)/[A-Za-z0-9_./]+`' "${texts[@]}")
  while IFS=: read -r place line path; do
    path=${path#*(}
    path=$(dirname "$place")/${path%)}
    [[ $path == *://* || -e $path ]] || fail "$place:$line: there is no $path"
  done < <(grep -noHE '\]\([^)#]+\)' "${texts[@]}")
  if grep -nHE '@[A-Z0-9]+@' "${documents[@]}"; then fail "a figure is missing"; fi
  [[ $(commands 'sh test' | wc -l) -ge 4 ]] || fail "there are hardly any commands to test"
}

run() {
  local kind=$1 seconds=$2 place command expected output code begin
  # A run of an earlier build cannot go on. Documents are tested beside each other.
  local runs=$build/runs-$mode-$(basename "${documents[0]}" .md)
  rm -rf "$runs"
  mkdir -p "$runs" "$build/images"
  PATH=$(dirname "$nvcc"):$PATH
  while IFS=$'\t' read -r place command; do
    expected=0
    [[ $command =~ \#\ exits\ with\ ([0-9]+)$ ]] && expected=${BASH_REMATCH[1]}
    begin=$SECONDS
    command=${command//build\/release/$build}
    command=${command// runs\// $runs/}
    command=${command// docs\/images/ $build/images}
    output=$(timeout "$seconds" bash -c "$command" 2>&1 </dev/null)
    code=$?
    if [[ $code -eq $expected ]]; then
      echo "PASS $place: $command ($((SECONDS - begin)) s)"
    else
      fail "$place: exit code $code, not $expected: $command"
      tail -n 20 <<<"$output"
    fi
  done < <(commands "$kind")
}

case $mode in
  lint) lint ;;
  run) run 'sh test' 300 ;;
  slow) run 'sh test slow' 600 ;;
  *) fail "mode '$mode'" ;;
esac
exit $failed
