#!/bin/bash
# Holds the virtual time of an all-reduce, by every algorithm and protocol of NCCL, against what NCCL itself
# predicts for these devices (its table of latencies and bandwidths, which it fits to hardware): within a
# factor of 2, and in the same order where predictions are more than 1.3 times apart.
#
# Usage: model.sh ALLRANKS PROGRAM BYTES
set -u
allranks=$1 program=$2 bytes=$3
table=$(NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING "$allranks" exec -- "$program" 8 4096) ||
  { echo "$table"; echo "FAIL no table"; exit 1; }

# predicted ALGORITHM COLUMN: microseconds; COLUMN is that of the algorithm's LL, in the rows of its table.
predicted() {
  awk -F'|' -v algorithm="$1" -v column="$2" -v bytes="$bytes" '
    / Algorithm / { here = index($0, " " algorithm " ") }
    / AllReduce \|/ && here {
      split($column, cost, "/")
      if (cost[2] > 0) printf "%.1f", cost[1] + bytes / cost[2] / 1000
    }' <<<"$table"
}

failed=0 results=
for way in Ring:LL:5 Ring:LL128:6 Ring:Simple:7 Tree:LL:2 Tree:LL128:3 Tree:Simple:4 NVLS:Simple:7; do
  IFS=: read -r algorithm protocol column <<<"$way"
  said=$(NCCL_ALGO=$algorithm NCCL_PROTO=$protocol "$allranks" exec -- "$program" 8 "$bytes") ||
    { echo "$said"; exit 1; }
  took=$(sed -nE 's/.*: ([0-9.]+) us per all-reduce.*/\1/p' <<<"$said")
  results+="$algorithm $protocol $(predicted "$algorithm" "$column") $took"$'\n'
done
awk -v bytes="$bytes" '
  NF == 0 { next }
  NF != 4 { print "FAIL no time or prediction: " $0; failed = 1; next }
  { name[NR] = $1 " " $2; expected[NR] = $3; took[NR] = $4; n = NR
    ratio = $4 / $3
    printf "%-12s NCCL expects %7.1f us, here %7.1f us: %.2f times\n", name[NR], $3, $4, ratio
    if (ratio > 2 || ratio < 0.5) { print "FAIL " name[NR] ": too far from it"; failed = 1 } }
  END {
    for (a = 1; a <= n; a++) for (b = 1; b <= n; b++)
      if (expected[a] * 1.3 < expected[b] && took[a] >= took[b]) {
        print "FAIL " name[a] " should take less than " name[b]; failed = 1 }
    exit failed }' <<<"$results" || failed=1
exit "$failed"
