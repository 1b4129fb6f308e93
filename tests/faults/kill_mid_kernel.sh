#!/bin/bash
# Kills the child of kill_mid_kernel while its kernel runs; the parent must go on.
# Usage: kill_mid_kernel.sh ALLRANKS PROGRAM
set -u
allranks=$1 program=$2
while read -r word rest; do
  case $word in
    kill)
      sleep 0.3  # into the kernel: the node works on nothing else
      kill -KILL "$rest"
      ;;
    PASS) passed=1 ;;
    *) echo "$word $rest" ;;
  esac
done < <(timeout 240 "$allranks" exec -- "$program"; echo "code $?")
[ "${passed:-0}" = 1 ] || { echo "FAIL the parent did not pass"; exit 1; }
