// Scratch from the stream-ordered allocator, used on two streams, freed, allocated again.
// EXPECT 1 use_after_free|race: freed in stream a while stream b still reads
// EXPECT 2 race|not_mapped|use_after_free|uninitialised: used in stream b without waiting for the allocation and the kernel of a
// EXPECT 3 use_after_free|race: freed twice-used: kernel enqueued behind the free in the same stream
#include "common.h"
constexpr int N = 65536, K = 4;
__global__ void Make(int* p, int k) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
    p[i] = i + k;
}
__global__ void Use(const int* p, int* out) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
    out[i] = p[i];
}
int main() {
  peers(2);
  int* out[K];
  for (int k = 0; k < K; ++k) out[k] = alloc<int>(0, N);
  sync_all(2);
  CK(cudaSetDevice(0));
  cudaStream_t a, b;
  CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  cudaEvent_t made, used;
  CK(cudaEventCreate(&made));
  CK(cudaEventCreate(&used));
  for (int k = 0; k < K; ++k) {
    int* p;
    CK(cudaMallocAsync(&p, N * sizeof(int), a));
    Make<<<8, 128, 0, a>>>(p, k);
    CK(cudaEventRecord(made, a));
    if (BUG != 2) CK(cudaStreamWaitEvent(b, made, 0));
    if (BUG == 3) {
      CK(cudaFreeAsync(p, a));
      Use<<<8, 128, 0, a>>>(p, out[k]);
      continue;
    }
    Use<<<8, 128, 0, b>>>(p, out[k]);
    CK(cudaEventRecord(used, b));
    if (BUG != 1) CK(cudaStreamWaitEvent(a, used, 0));
    CK(cudaFreeAsync(p, a));
  }
  sync_all(2);
  long wrong = 0;
  for (int k = 0; k < K; ++k) {
    auto v = get(0, out[k], N);
    for (int i = 0; i < N; ++i) wrong += v[i] != i + k;
  }
  CK(cudaEventDestroy(made));
  CK(cudaEventDestroy(used));
  CK(cudaStreamDestroy(a));
  CK(cudaStreamDestroy(b));
  return finish(wrong, 2);
}
