// One operation of a stream writes data on device 0, the next kernel of that stream tells device 1 by a flag, and a kernel
// there that polls the flag with acquire reads the data over the link.
// EXPECT 1 portability: written by a kernel, the flag is relaxed: relies on the boundary between kernels as a fence for peers
// EXPECT 2 portability: written by a copy, the flag is relaxed
// EXPECT 3 none: written by a copy, the flag is a release
// EXPECT 4 race: the kernel that stores the relaxed flag writes the data itself
// EXPECT 5 race: the data is written in a stream of its own
#include "common.h"
constexpr int N = 512, T = 128;
__global__ void Fill(int* data) {
  const int i = blockIdx.x * T + threadIdx.x;
  data[i] = 3 * i + 1;
}
__global__ void Tell(unsigned* flag, int* data) {
  if (BUG == 4)
    for (int i = threadIdx.x; i < N; i += T) data[i] = 3 * i + 1;
  __syncthreads();
  if (threadIdx.x != 0) return;
#if BUG == 0 || BUG == 3 || BUG == 5
  st_release(flag, 1);
#else
  st_relaxed(flag, 1);
#endif
}
__global__ void Use(const unsigned* flag, const int* data, int* out) {
  if (threadIdx.x == 0) wait_ge(flag, 1);
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += T) out[i] = data[i];
}
int main() {
  peers(2);
  int *data = alloc<int>(0, N), *out = alloc<int>(1, N);
  unsigned* flag = alloc<unsigned>(1, 1);
  int* host;
  CK(cudaMallocHost(&host, N * sizeof(int)));
  for (int i = 0; i < N; ++i) host[i] = 3 * i + 1;
  sync_all(2);
  cudaStream_t there, here, other;
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking));
  Use<<<1, T, 0, there>>>(flag, data, out);
  CK(cudaSetDevice(0));
  CK(cudaStreamCreateWithFlags(&here, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
#if BUG == 2 || BUG == 3
  CK(cudaMemcpyAsync(data, host, N * sizeof(int), cudaMemcpyHostToDevice, here));
#elif BUG != 4
  Fill<<<N / T, T, 0, BUG == 5 ? other : here>>>(data);
#endif
  Tell<<<1, T, 0, here>>>(flag, data);
  sync_all(2);
  long wrong = 0;
  const auto got = get(1, out, N);
  for (int i = 0; i < N; ++i) wrong += got[i] != host[i];
  CK(cudaSetDevice(0));
  CK(cudaStreamDestroy(here));
  CK(cudaStreamDestroy(other));
  CK(cudaSetDevice(1));
  CK(cudaStreamDestroy(there));
  CK(cudaFreeHost(host));
  return finish(wrong, 2);
}
