// The node is killed while this program waits in a call: the call and all later ones must fail.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void Endless(unsigned* out) {
  unsigned value = threadIdx.x;
  for (;;) {
    value = value * 1664525u + 1013904223u;
    out[value % 1024] = value;
  }
}

int main() {
  unsigned* memory = nullptr;
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return 2;
  Endless<<<4, 64>>>(memory);
  std::printf("waiting\n");
  std::fflush(stdout);
  const cudaError_t status = cudaDeviceSynchronize();
  if (status == cudaSuccess) {
    std::printf("FAIL the endless kernel ended\n");
    return 1;
  }
  std::printf("error %d: %s\n", static_cast<int>(status), cudaGetErrorString(status));
  void* more = nullptr;
  const cudaError_t later = cudaMalloc(&more, 16);
  if (later == cudaSuccess) {
    std::printf("FAIL a dead node gave memory\n");
    return 1;
  }
  std::printf("PASS node_killed\n");
  return 0;
}
