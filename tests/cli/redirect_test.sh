#!/bin/bash
# `allranks exec` on what nvcc makes by default: programs and libraries that carry the static CUDA runtime
# run on the node, with PTX of any version. What cannot be served is told once, with the remedy, and fails.
#
# Usage: redirect_test.sh ALLRANKS NVCC FOLDER
set -u
allranks=$1 nvcc=$2 folder=$3
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder" || exit 1
failed=0
fail() { echo "FAIL $*"; failed=1; }
run() { # EXIT COMMAND...
  local expected=$1
  shift
  "$@" >out.txt 2>&1
  local code=$?
  [[ $code -eq $expected ]] || { fail "exit code $code, not $expected: $*"; cat out.txt; }
}
says() { [[ $(grep -cF -- "$2" out.txt) -eq $1 ]] || { fail "not $1 times: $2"; cat out.txt; }; }

cat >answer.cu <<'END'
#include <cstdio>
__managed__ int g_managed = 3;
__device__ int g_device = 4;
__global__ void Add(int* out) { *out = 35 + g_managed + g_device; }
extern "C" int Answer() {
  int* out = nullptr;
  int value = 0, devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) return -1;
  if (cudaMalloc(&out, 4) != cudaSuccess) return -2;
  Add<<<1, 1>>>(out);
  if (cudaMemcpy(&value, out, 4, cudaMemcpyDefault) != cudaSuccess) return -3;
  cudaFree(out);
  std::printf("%d on one of %d devices\n", value, devices);
  return value == 42 && devices == 8 ? 0 : 1;
}
END
cat >main.cu <<'END'
extern "C" int Answer();
int main() { return Answer() == 0 ? 0 : 1; }
END
# Looks at no error.
cat >careless.cu <<'END'
__global__ void Nothing() {}
int main() {
  for (int device = 0; device < 8; ++device) {
    cudaSetDevice(device);
    Nothing<<<1, 1>>>();
    cudaDeviceSynchronize();
  }
}
END
cat >open.cpp <<'END'
#include <dlfcn.h>
#include <cstdio>
int main(int, char** argv) {
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  return reinterpret_cast<int (*)()>(dlsym(library, "Answer"))() == 0 ? 0 : 1;
}
END
# Counts calls of its own and passes them on: not the static runtime, though it has such a name.
cat >wrapper.cpp <<'END'
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <cstdio>
extern "C" __attribute__((visibility("default"))) cudaError_t cudaMalloc(void** p, size_t n) {
  std::printf("wrapped\n");
  return reinterpret_cast<cudaError_t (*)(void**, size_t)>(dlsym(RTLD_NEXT, "cudaMalloc"))(p, n);
}
END
"$nvcc" -o plain answer.cu main.cu &&
  "$nvcc" -o shared -cudart shared answer.cu main.cu &&
  "$nvcc" -shared -Xcompiler -fPIC -o libanswer.so answer.cu &&
  "$nvcc" -shared -Xcompiler -fPIC -cudart none -o libwrapper.so wrapper.cpp &&
  "$nvcc" -cudart none -o open open.cpp -ldl &&
  cp main.cu caller.cpp && "$nvcc" -o linked caller.cpp -cudart none -L. -lanswer -Xlinker -rpath,"$folder" &&
  "$nvcc" -gencode arch=compute_120,code=compute_120 -o above answer.cu main.cu &&
  "$nvcc" -gencode arch=compute_90,code=sm_90 -o machine_code careless.cu &&
  cp plain stripped && strip stripped || exit 1

for program in ./plain ./shared ./linked "./open ./libanswer.so"; do
  # shellcheck disable=SC2086
  run 0 "$allranks" exec -- $program
  says 1 "42 on one of 8 devices"
done
run 0 "$allranks" exec --ranks 2 -- ./plain
says 2 "42 on one of 8 devices"
run 0 env LD_PRELOAD="$folder/libwrapper.so" "$allranks" exec -- ./shared
says 1 "42 on one of 8 devices"
says 1 "wrapped"
run 1 "$allranks" exec -- ./stripped
says 1 "static CUDA runtime"
says 0 "42 on one"
run 1 "$allranks" exec --no-redirect -- ./plain
says 1 "static CUDA runtime"
# PTX of a later version is executed if there is no other, and said once.
run 0 "$allranks" exec --stats -- ./above
says 1 "42 on one of 8 devices"
says 1 "PTX for compute_120"
# Without PTX nothing runs, which no exit code of the program hides, and no checker praises.
run 88 "$allranks" exec --check -- ./machine_code
says 1 "-gencode arch=compute_90,code=[sm_90,compute_90]"
says 1 "0 kernels, 0 blocks, 0 accesses, others did not run"
run 0 "$allranks" exec -- /bin/sh -c 'exit 0'
run 7 "$allranks" exec -- /bin/sh -c 'exit 7'
exit $failed
