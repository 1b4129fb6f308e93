// The host polls with cudaEventQuery and only then launches the consumer on another device; buffers are reused behind a second event.
// EXPECT 1 race: host does not look at the query's result
// EXPECT 2 race: event is recorded in another stream than the producer's
#include "common.h"
constexpr int N = 8192, K = 4;
__global__ void Make(int* p, int k) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) p[i] = i + k;
}
__global__ void Use(const int* p, int* out) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) out[i] = p[i];
}
int main() {
  peers(2);
  int *buf = alloc<int>(0, N), *out[K];
  for (auto& o : out) o = alloc<int>(1, N);
  sync_all(2);
  CK(cudaSetDevice(0));
  cudaStream_t s, s2, t;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking));
  cudaEvent_t e, f;
  CK(cudaEventCreate(&e));
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  CK(cudaEventCreate(&f));
  for (int k = 0; k < K; ++k) {
    CK(cudaSetDevice(0));
    Make<<<1, 128, 0, s>>>(buf, k);
    CK(cudaEventRecord(e, BUG == 2 ? s2 : s));
    if (BUG == 1)
      (void)cudaEventQuery(e);
    else
      while (cudaEventQuery(e) == cudaErrorNotReady) {
      }
    CK(cudaSetDevice(1));
    Use<<<1, 128, 0, t>>>(buf, out[k]);
    CK(cudaEventRecord(f, t));
    CK(cudaEventSynchronize(f));
  }
  sync_all(2);
  long wrong = 0;
  for (int k = 0; k < K; ++k) {
    auto v = get(1, out[k], N);
    for (int i = 0; i < N; ++i) wrong += v[i] != i + k;
  }
  CK(cudaEventDestroy(f));
  CK(cudaStreamDestroy(t));
  CK(cudaSetDevice(0));
  CK(cudaEventDestroy(e));
  CK(cudaStreamDestroy(s));
  CK(cudaStreamDestroy(s2));
  return finish(wrong, 2);
}
