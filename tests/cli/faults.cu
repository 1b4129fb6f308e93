// Kernels that fail in a program that does not care and exits with 0.
#include <cassert>
#include <cstdio>
#include <cstring>

__global__ void Store(int* out) { out[threadIdx.x] = 1; }
__global__ void Assert(int limit) { assert(static_cast<int>(threadIdx.x) < limit); }
__global__ void Trap() {
  if (threadIdx.x == 5) __trap();
}

// Two blocks store different values without an order.
__global__ void Race(int* to) { *to = static_cast<int>(blockIdx.x); }

int main(int, char** argv) {
  const auto is = [&](const char* name) { return std::strcmp(argv[1], name) == 0; };
  if (is("address")) Store<<<2, 32>>>(reinterpret_cast<int*>(0x40));
  if (is("assert")) Assert<<<1, 64>>>(40);
  if (is("exit")) return 89;  // of its own: no kernel has failed
  if (is("race and trap")) {
    int* to;
    cudaMalloc(&to, sizeof *to);
    Race<<<2, 1>>>(to);
  }
  if (is("trap") || is("race and trap")) Trap<<<1, 32>>>();
  if (is("copy")) {
    void *from, *to;
    cudaMalloc(&from, 1 << 20);
    cudaSetDevice(1);
    cudaMalloc(&to, 1 << 20);
    cudaMemcpyPeer(to, 1, from, 0, 1 << 20);
  }
  cudaDeviceSynchronize();
  std::printf("done\n");
  return 0;
}
