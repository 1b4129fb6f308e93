// LINK -lcuda
// Stream memory operations as flags between devices: kernel, cuStreamWriteValue32 to the peer, cuStreamWaitValue32 there.
// EXPECT 1 race: value written in another stream than the kernel's
// EXPECT 2 race: consumer's kernel is in a stream that does not wait
// EXPECT 3 race: producer's kernel raises the flag itself, relaxed
// EXPECT 4 race: value written before the copy
#include <cuda.h>
#include "common.h"
constexpr int N = 4096, K = 4;
__global__ void Make(int* p, int k, unsigned* flag) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) p[i] = k * N + i;
  if (flag) {
    __syncthreads();
    if (threadIdx.x == 0) {
      if (BUG == 3)
        st_relaxed(flag, k + 1);
      else
        st_release(flag, k + 1);
    }
  }
}
__global__ void Use(const int* p, int* out, int k) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) out[k * N + i] = p[i];
}
int main() {
  peers(2);
  int *src = alloc<int>(0, 2 * N), *dst = alloc<int>(1, 2 * N), *out = alloc<int>(1, K * N);
  unsigned *full = alloc<unsigned>(1, 1), *empty = alloc<unsigned>(0, 1);
  sync_all(2);
  cudaStream_t a, a2, b, b2;
  CK(cudaSetDevice(0));
  CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&a2, cudaStreamNonBlocking));
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&b2, cudaStreamNonBlocking));
  for (int k = 0; k < K; ++k) {
    CK(cudaSetDevice(0));
    if (k >= 2) cuStreamWaitValue32(a, (CUdeviceptr)empty, k - 1, CU_STREAM_WAIT_VALUE_GEQ);
    const bool direct = k % 2 || BUG == 3;  // odd rounds put directly, even ones by a copy
    if (direct)
      Make<<<1, 128, 0, a>>>(dst + k % 2 * N, k, full);
    else {
      Make<<<1, 128, 0, a>>>(src, k, nullptr);
      if (BUG == 4) cuStreamWriteValue32(a, (CUdeviceptr)full, k + 1, 0);
      CK(cudaMemcpyAsync(dst + k % 2 * N, src, N * sizeof(int), cudaMemcpyDefault, a));
      if (BUG != 4) cuStreamWriteValue32(BUG == 1 ? a2 : a, (CUdeviceptr)full, k + 1, 0);
    }
    CK(cudaSetDevice(1));
    cuStreamWaitValue32(b, (CUdeviceptr)full, k + 1, CU_STREAM_WAIT_VALUE_GEQ);
    Use<<<1, 128, 0, BUG == 2 ? b2 : b>>>(dst + k % 2 * N, out, k);
    cuStreamWriteValue32(b, (CUdeviceptr)empty, k + 1, 0);
  }
  sync_all(2);
  long wrong = 0;
  auto v = get(1, out, K * N);
  for (int i = 0; i < K * N; ++i) wrong += v[i] != i;
  CK(cudaStreamDestroy(b));
  CK(cudaStreamDestroy(b2));
  CK(cudaSetDevice(0));
  CK(cudaStreamDestroy(a));
  CK(cudaStreamDestroy(a2));
  return finish(wrong, 2);
}
