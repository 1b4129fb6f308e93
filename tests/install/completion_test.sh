#!/bin/bash
# What each shell offers. Shells that are not there are left out, and it says so.
# Usage: completion_test.sh FOLDER    where `allranks docs --install` has written
set -u
folder=$1 failed=0
# expect WHAT OFFERED WORD...: all words are offered, and none that begins with `!`.
expect() {
  local what=$1 offered=$2 word
  for word in "${@:3}"; do
    if [[ $word == !* ]]; then
      if grep -qxF -e "${word#!}" <<<"$offered"; then echo "FAIL $what: ${word#!} is offered"; failed=1; fi
    elif ! grep -qxF -e "$word" <<<"$offered"; then
      echo "FAIL $what: $word is not offered, but: $offered"
      failed=1
    fi
  done
}
offer_bash() {
  bash --norc -c 'source "$1/bash/allranks"; COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _allranks; printf "%s\n" "${COMPREPLY[@]}"' bash "$folder" "$@"
}
# _describe and _files print what they were given.
offer_zsh() {
  zsh -f -c 'folder=$1; shift; words=("$@"); CURRENT=$#words
    _describe() { local -a given; given=("${(@P)@[-1]}"); print -l -- "${(@)given%%:*}"; }
    _files() { print -- FILES; }
    source "$folder/zsh/_allranks"' zsh "$folder" "$@" | grep -E "^(${*: -1}|FILES)"
}
offer_fish() {
  fish --no-config -c 'source $argv[1]/fish/allranks.fish; complete -C "$argv[2]"' "$folder" "$*" | cut -f1
}
for shell in bash zsh fish; do
  command -v $shell >/dev/null || { echo "no $shell here: left out"; continue; }
  offer=offer_$shell
  expect "$shell commands" "$($offer allranks '')" exec judge problems report !node !docs
  expect "$shell ex" "$($offer allranks ex)" exec !judge
  expect "$shell exec --" "$($offer allranks exec --s)" --stats --schedules !--profile
  expect "$shell problems" "$($offer allranks problems '')" list check new !exec
  expect "$shell problems check" "$($offer allranks problems check --)" --sample --only !--stats
  expect "$shell value" "$($offer allranks exec --profile '')" !--stats
  expect "$shell behind --" "$($offer allranks exec -- --)" !--stats
  echo "$shell: done"
done
exit $failed
