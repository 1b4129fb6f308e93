// LINK -lcuda
// A kernel on device 1 polls for data that device 0's copy engine brings: data by a copy, the flag by cuStreamWriteValue32.
// EXPECT 1 race: flag brought by a second cudaMemcpyAsync (weak access, polled meanwhile)
// EXPECT 2 race: flag set by cudaMemsetAsync
// EXPECT 3 race: flag written in a stream that does not wait for the copy's stream
#include <cuda.h>
#include "common.h"
constexpr int N = 4096, T = 128;
__global__ void Poll(const int* data, unsigned* flag, int* out) {
  if (threadIdx.x == 0)
    while (ld_acquire(flag) == 0) {
    }
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += T) out[i] = data[i];
}
int main() {
  peers(2);
  int *src = alloc<int>(0, N), *dst = alloc<int>(1, N), *out = alloc<int>(1, N);
  unsigned *flag = alloc<unsigned>(1, 1), *one = alloc<unsigned>(0, 1, 1);
  std::vector<int> v(N);
  for (int i = 0; i < N; ++i) v[i] = 7 * i;
  put(0, src, v);
  sync_all(2);
  cudaStream_t a, a2, b;
  CK(cudaSetDevice(0));
  CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&a2, cudaStreamNonBlocking));
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  Poll<<<1, T, 0, b>>>(dst, flag, out);
  CK(cudaSetDevice(0));
  CK(cudaMemcpyAsync(dst, src, N * 4, cudaMemcpyDefault, a));
  if (BUG == 1)
    CK(cudaMemcpyAsync(flag, one, 4, cudaMemcpyDefault, a));
  else if (BUG == 2)
    CK(cudaMemsetAsync(flag, 1, 4, a));
  else if (BUG == 3) {
    for (int i = 0; i < 1; ++i) cuStreamWriteValue32(a2, (CUdeviceptr)flag, 1, 0);
  } else
    cuStreamWriteValue32(a, (CUdeviceptr)flag, 1, 0);
  sync_all(2);
  long wrong = 0;
  auto w = get(1, out, N);
  for (int i = 0; i < N; ++i) wrong += w[i] != v[i];
  CK(cudaStreamDestroy(b));
  CK(cudaSetDevice(0));
  CK(cudaStreamDestroy(a));
  CK(cudaStreamDestroy(a2));
  return finish(wrong, 2);
}
