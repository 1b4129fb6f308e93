#!/bin/bash
# tools/nccl/build against a folder whose Makefile takes what NCCL's takes: src.build, BUILDDIR, CUDA_HOME,
# NVCC_GENCODE and ONLY_FUNCS.
# Usage: nccl_build_test.sh ROOT FOLDER CUDA_HOME
set -u
root=$1 folder=$2
export CUDA_HOME=$3
rm -rf "$folder" && mkdir -p "$folder/src" || exit 1
fail() { echo "FAIL $*"; exit 1; }
printf '__global__ void Kernel(int* a) { *a = 1; }\n' >"$folder/src/kernel.cu"
printf 'src.build:\n\tmkdir -p $(BUILDDIR)/lib\n\techo "$(ONLY_FUNCS)" >$(BUILDDIR)/functions\n' >"$folder/Makefile"
printf '\t$(CUDA_HOME)/bin/nvcc -no-compress $(NVCC_GENCODE) -shared -Xcompiler -fPIC -o $(BUILDDIR)/lib/libnccl.so.2 src/kernel.cu\n' >>"$folder/Makefile"
said=$("$root/tools/nccl/build" "$folder" "$folder/out" "AllReduce Sum f32 RING LL" 2>&1) || fail "$said"
[[ $said == *"LD_LIBRARY_PATH=$folder/out/lib allranks exec -- PROGRAM"* ]] || fail "it does not say how to use it: $said"
[[ $(cat "$folder/out/functions") == "AllReduce Sum f32 RING LL" ]] || fail "ONLY_FUNCS: $(cat "$folder/out/functions")"
grep -aq '^\.target sm_90' "$folder/out/lib/libnccl.so.2" || fail "no PTX for compute_90"

# What is no checkout, or builds nothing.
printf 'src.build:\n\ttrue\n' >"$folder/Makefile"
said=$("$root/tools/nccl/build" "$folder" 2>&1) && fail "no library was accepted: $said"
[[ $said == *"make has written no "* ]] || fail "it does not say what is missing: $said"
rm "$folder/Makefile"
said=$("$root/tools/nccl/build" "$folder" 2>&1) && fail "a folder without a Makefile was accepted: $said"
[[ $said == *"is no checkout of NCCL"* ]] || fail "it does not say what is wrong: $said"
echo PASS
