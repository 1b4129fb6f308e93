// The host takes results from pinned memory (a kernel's stores, and a copy).
// EXPECT 1 hostrace: host reads the copy's destination without waiting
// EXPECT 2 hostrace: host reads a kernel's zero-copy stores without waiting
// EXPECT 3 race: host reuses the pinned source of a copy that is still under way: here another kernel overwrites it
#include "common.h"
constexpr int N = 1 << 16;
__global__ void Make(int* p, int k) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
    p[i] = i + k;
}
int main() {
  peers(2);
  int* d = alloc<int>(0, N);
  int *h, *z;
  CK(cudaHostAlloc(&h, N * 4, cudaHostAllocPortable));
  CK(cudaHostAlloc(&z, N * 4, cudaHostAllocPortable));
  std::memset(h, 0, N * 4);
  std::memset(z, 0, N * 4);
  sync_all(2);
  CK(cudaSetDevice(0));
  cudaStream_t s, t;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  CK(cudaSetDevice(0));
  Make<<<4, 128, 0, s>>>(d, 1);
  CK(cudaMemcpyAsync(h, d, N * 4, cudaMemcpyDeviceToHost, s));
  CK(cudaSetDevice(1));
  Make<<<4, 128, 0, t>>>(z, 2);
  if (BUG == 3) {
    Make<<<4, 128, 0, t>>>(h, 1);
  }
  if (BUG != 1) CK(cudaStreamSynchronize(s));
  if (BUG != 2) CK(cudaStreamSynchronize(t));
  long wrong = 0;
  for (int i = 0; i < N; ++i) wrong += h[i] != i + 1 || z[i] != i + 2;
  sync_all(2);
  CK(cudaStreamDestroy(t));
  CK(cudaSetDevice(0));
  CK(cudaStreamDestroy(s));
  CK(cudaFreeHost(h));
  CK(cudaFreeHost(z));
  return finish(wrong, 2);
}
