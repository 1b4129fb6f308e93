#!/bin/bash
# What `exec` says of calls and of kernels that fail, and with which exit code.
# Usage: failures_test.sh ALLRANKS NVCC SOURCE FOLDER
set -u
export LC_ALL=C
allranks=$1 nvcc=$2 source=$3/tests/cli folder=$4
fail() { echo "FAIL $*"; exit 1; }
# has TEXT PATTERN...: each is in it.
has() {
  local pattern
  for pattern in "${@:2}"; do grep -qE -e "$pattern" <<<"$1" || fail "nothing fits $pattern in: $1"; done
}
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" || exit 1
# The library under the name of one that the user has written, and under NCCL's.
"$nvcc" -lineinfo -Xcompiler -g,-fPIC -shared -o libncclx_mine.so "$source/calls_of_library.cu" || fail "nvcc libncclx_mine.so"
cp libncclx_mine.so libnccl.so
for name in mine nccl; do
  library=libncclx_mine.so
  if [[ $name == nccl ]]; then library=libnccl.so; fi
  "$nvcc" -lineinfo -Xcompiler -g -o calls_$name "$source/api_errors.cu" "$library" -Xlinker -rpath,"$folder" || fail nvcc
done
"$nvcc" -lineinfo -Xcompiler -g -o faults "$source/faults.cu" || fail "nvcc faults"

# --- every function that works has a row, but for questions and for launches, which describe themselves
# without_row LIBRARY FOLDER EXCEPTION...
without_row() {
  comm -23 <(nm -D --defined-only "$(dirname "$allranks")/../lib/allranks/$1" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' |
    grep -E '^cu(da)?[A-Z]' | sort) <(sed -nE 's/^ALLRANKS_CALL\((\w+).*/\1/p' "$source/../../src/shim/$2/calls.def" | sort) |
    grep -vxE "$(IFS='|' && echo "${*:3}")"
}
said=$(without_row libcuda.so.1 cuda cuGetErrorName cuGetErrorString cuGetExportTable 'cuGetProcAddress(_v2)?' \
  'cuPointerGetAttributes?' cuCtxGetDevice 'cuProfiler(Start|Stop)')
[[ -z $said ]] || fail "no row in src/shim/cuda/calls.def: $said"
said=$(without_row libcudart.so.13 cudart 'cudaGetError(Name|String)' 'cuda(Get|PeekAt)LastError' cudaCreateChannelDesc \
  'cudaLaunch(Cooperative)?Kernel(ExC)?(_ptsz)?' 'cudaProfiler(Start|Stop)' 'cuda(Device(Get|Set)|FuncSet)SharedMemConfig')
[[ -z $said ]] || fail "no row in src/shim/cudart/calls.def: $said"

# --- calls of the driver
said=$("$allranks" exec --check -- ./calls_mine driver 2>&1)
(($? == 87)) || fail "errors of the driver do not count: $said"
has "$said" 'api_error: cuMemAlloc\(bytesize=0\) returns CUDA_ERROR_INVALID_VALUE \(1\)' \
  'api_error: cuMemFree\(dptr=0x1234\) returns CUDA_ERROR_' 'api_error: cuEventCreate\(phEvent=null, Flags=0\)' \
  'api_error: cuModuleLoad\(fname="no such file"\) returns CUDA_ERROR_FILE_NOT_FOUND' \
  'api_error: cuMemCreate\(size=2097152, prop=\{type 1, location type 1, id 77\}, flags=0\) returns' \
  'api_error: cuMemUnmap\(ptr=0x4000, size=2097152\) returns' 'api_errors\.cu:2[0-9]' '6 findings: 6 api_error'
[[ $said != *cudaGetLastError* ]] || fail "the driver has no last error: $said"
said=$("$allranks" exec --check -- ./calls_mine answers 2>&1) || fail "answers are errors: $said"

# --- calls of the runtime: each once, as the program's call, with its arguments
said=$("$allranks" exec --check --max-findings 100 -- ./calls_mine runtime 2>&1)
(($? == 87)) || fail "errors of the runtime do not count: $said"
has "$said" 'cudaMalloc\(size=1125899906842624\) returns cudaErrorMemoryAllocation' \
  'cudaHostAlloc\(pHost=null, size=16, flags=2\) returns cudaErrorInvalidValue' \
  'cudaMallocAsync\(devPtr=null, size=32, hStream=null\)' 'cudaStreamCreateWithFlags\(pStream=null, flags=1\)' \
  'cudaStreamWaitEvent\(stream=null, event=null, flags=0\)' 'cudaEventRecord\(event=null, stream=null\)' \
  'cudaDeviceEnablePeerAccess\(peerDevice=99, flags=0\)' 'cudaMemset\(devPtr=null, value=7, count=16\)' \
  'cudaMemcpy\(dst=0x[0-9a-f]+, src=null, count=8, kind=9\) returns cudaErrorInvalidMemcpyDirection' \
  'cudaMemcpyToSymbol\(symbol=0x[0-9a-f]+, src=0x[0-9a-f]+, count=4, offset=64, kind=1\)' \
  'cudaHostRegister\(ptr=null, size=4096, flags=0\)' 'cudaIpcOpenMemHandle\(devPtr=null, flags=1\)' \
  'cudaGraphLaunch\(graphExec=null, stream=null\)' 'cudaSetDevice\(device=90\)' 'seen 3 times' ' 14 api_error'
if grep -q 'api_error: cu[A-Z]' <<<"$said"; then fail "a call of the runtime is reported as the driver's: $said"; fi

# --- a library that copes with its errors
said=$("$allranks" exec --check -- ./calls_nccl library 2>&1) || fail "errors within NCCL are findings: $said"
has "$said" '^2 calls failed' 'no findings'
said=$("$allranks" exec --check -- ./calls_mine library 2>&1)
(($? == 87)) || fail "errors within the user's own library are no findings: $said"
has "$said" 'cudaSetDevice\(device=99\)' 'cuCtxEnablePeerAccess\(peerContext=null, Flags=0\)' ' 2 api_error'

# --- kernels that fail: said once, and never exit code 0
# failure ARGUMENT PATTERN [OPTION...]
failure() {
  said=$("$allranks" exec "${@:3}" -- ./faults "$1" 2>&1)
  (($? == 89)) || fail "exit code $? after $1: $said"
  has "$said" "^done" "^allranks: device [0-9]: $2" '^allranks: the program exited with 0, but kernels or copies of it failed$'
  (($(grep -c '^allranks: device' <<<"$said") == 1)) || fail "more than once: $said"
  said=$("$allranks" exec --allow-faults "${@:3}" -- ./faults "$1" 2>&1) || fail "exit code $? with --allow-faults: $said"
  has "$said" "^allranks: device [0-9]: $2"
}
failure address '.* in kernel Store\(int\*\), block \([01],0,0\), warp 0, .*faults\.cu:6 \(CUDA_ERROR_ILLEGAL_ADDRESS\)$'
has "$said" 'thread'
failure assert 'assertion failed in kernel Assert\(int\), block \(0,0,0\), warp 1, thread \(40,0,0\), .*faults\.cu:7 \(CUDA_ERROR_ASSERT\)$'
failure trap '.* in kernel Trap\(\), block \(0,0,0\), warp 0, thread \(5,0,0\), .*faults\.cu:9 \(CUDA_ERROR_LAUNCH_FAILED\)$'
failure copy 'a copy uses a dead link \(CUDA_ERROR_NVLINK_UNCORRECTABLE\)$' --fault link:gpu1-nvswitch=dead
said=$("$allranks" exec --check -- ./faults address 2>&1)
(($? == 87)) || fail "exit code $? of a finding: $said"
if grep -q '^allranks: device' <<<"$said"; then fail "said by the finding and once more: $said"; fi
said=$("$allranks" exec --check --schedules 1 --findings found.sarif -- ./faults trap 2>&1)
(($? == 87 || $? == 89)) || fail "a trap under --check: $said"
has "$said" '^allranks: device 0: .* in kernel Trap\(\)'

# --- a finding takes the place only of the failure that it explains, and only if it counts
said=$("$allranks" exec --check -- ./faults 'race and trap' 2>&1)
(($? == 87)) || fail "exit code $? of a race and a trap: $said"
has "$said" '^race: ' '^allranks: device 0: .* in kernel Trap\(\)' '1 race'
if grep -q '^allranks: the program also exited' <<<"$said"; then fail "the program exited with 0: $said"; fi
printf '%s\n' 'race kernel:Race*' '* kernel:Store*' 'api_error file:*' >suppressed
said=$("$allranks" exec --check --schedules 1 --suppress suppressed --findings found.xml -- ./faults 'race and trap' 2>&1)
(($? == 89)) || fail "exit code $? of a trap and a suppressed race: $said"
has "$said" '^allranks: device 0: .* in kernel Trap\(\)' '^allranks: under schedule [0-9]+: device 0: .* in kernel Trap\(\)' 'no findings, .* suppressed'
has "$(<found.xml)" 'in kernel Trap\(\)'
for filter in '--suppress suppressed' '--only race'; do
  # shellcheck disable=SC2086 # two words
  said=$("$allranks" exec --check $filter -- ./faults address 2>&1)
  (($? == 89)) || fail "exit code $? of an address with $filter: $said"
  has "$said" '^allranks: device 0: .* in kernel Store\(int\*\)'
done

# --- an exit code of the program's own that is one of exec's
said=$("$allranks" exec --check --findings found.xml -- ./faults exit 2>&1)
(($? == 89)) || fail "exit code $? of a program that exits with 89: $said"
if grep -q 'failed' <<<"$said"; then fail "no kernel has failed: $said"; fi
echo PASS
