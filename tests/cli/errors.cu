// Calls that fail: a launch nobody asks about, a copy in the wrong direction, and memory that stays.
#include <cstdio>

__global__ void Fill(int* out) { out[threadIdx.x] = 1; }

int main(int argc, char**) {
  cudaSetDevice(5);
  int* memory = nullptr;
  cudaMalloc(&memory, 4096);
  if (argc > 1) {
    cudaSetDevice(99);
    cudaGetLastError();
    Fill<<<1, 2048>>>(memory);
  }
  Fill<<<1, 32>>>(memory);
  cudaDeviceSynchronize();
  std::printf("done\n");
  return 0;
}
