#!/usr/bin/env bash
# References on other machines than h100x8: all of them on b300x8, those of some families on gb200nvl72,
# where eight ranks are on two hosts, and those over PCIe on l40s-pcie8. Of each kind every N-th, another
# one every day.
#   profiles.sh ALLRANKS SOURCE_DIR [N]
set -euo pipefail
allranks=$1
source=$2
period=${3:-1}
day=$(($(date +%s) / 86400))
failed=0
count=0
# on PROFILE FOLDER...
on() {
  local profile=$1 folder place=0 out
  for folder in "${@:2}"; do
    if (((place++ + day) % period != 0)); then continue; fi
    count=$((count + 1))
    out=$("$allranks" judge "$folder" --solution "$folder/reference.cu" --profile "$profile" --seed 1 2>&1 || true)
    if [[ ${out%%$'\n'*} == *": pass, "* ]]; then
      echo "$profile ${out%% (*}"
    else
      printf '%s\n' "$profile: $out" >&2
      failed=1
    fi
  done
}
cd "$source/problems"
on b300x8 */*/
on gb200nvl72 collective/allreduce_*/ collective/allgather_*/ collective/alltoall_*/ ep/ep_*/
# No multicast, and nothing that needs Hopper's instructions.
on l40s-pcie8 utilities/fifo_*/ p2p/flag_pingpong/ p2p/peer_copy_values/ utilities/remote_*/ \
  collective/allreduce_{one_shot,two_shot,ring,lamport}/
echo "$count references on other machines"
exit "$failed"
