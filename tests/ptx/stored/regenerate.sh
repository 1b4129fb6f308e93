#!/bin/bash
# Makes the stored files of this folder anew. Needs nvcc 13.0 in PATH; the tests do not.
set -euo pipefail
cd "$(dirname "$0")"
for arch in 75 80 86 89 90 90a 100 100a 103; do
  nvcc -ptx -lineinfo -arch="compute_$arch" exchange.cu -o "exchange_sm_$arch.ptx"
  # The folder this happened to be built in, and the toolkit's, mean nothing elsewhere.
  sed -i -E 's|"[^"]*/(exchange\.cu)"|"\1"|; s|"[^"]*/include/|"include/|' "exchange_sm_$arch.ptx"
done
# Targets that differ from another in the line of the target only: stored_test.cpp puts it in.
for pair in 80:75 86:75 89:75 103:100; do
  diff <(sed /^.target/d "exchange_sm_${pair%:*}.ptx") <(sed /^.target/d "exchange_sm_${pair#*:}.ptx")
  rm "exchange_sm_${pair%:*}.ptx"
done
for mode in none speed size; do
  nvcc -fatbin --compress-mode="$mode" -gencode arch=compute_75,code=compute_75 \
    -gencode arch=compute_90,code=compute_90 -gencode arch=compute_90a,code=compute_90a \
    exchange.cu -o "ptx_only_$mode.fatbin"
done
nvcc -fatbin --compress-mode=size -gencode 'arch=compute_80,code=[sm_80,sm_86]' \
  -gencode 'arch=compute_90,code=[sm_90,compute_90]' -gencode arch=compute_90a,code=sm_90a \
  -gencode 'arch=compute_100f,code=compute_100f' exchange.cu -o cubins.fatbin
nvcc -cubin -Xptxas -v -arch=sm_90 exchange.cu -o exchange_sm_90.cubin 2>exchange_sm_90.ptxas
sed -i -E '/Compile time/d' exchange_sm_90.ptxas
