// A chain over two devices and the host: kernel, copy to pinned memory, host function that changes it, copy to the other device, kernel.
// EXPECT 1 race: second copy in a stream that does not wait for the host function's stream
// EXPECT 2 hostrace: host thread changes the pinned buffer instead, without waiting for the copy
#include "common.h"
constexpr int N = 2048, K = 3;
__global__ void Make(int* p, int k) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) p[i] = i + k;
}
__global__ void Use(const int* p, int* out) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) out[i] = p[i];
}
static void twice(void* p) {
  for (int i = 0; i < N; ++i) ((int*)p)[i] *= 2;
}
int main() {
  peers(2);
  int *a = alloc<int>(0, N), *b = alloc<int>(1, N), *out[K];
  for (auto& o : out) o = alloc<int>(1, N);
  int* h;
  CK(cudaHostAlloc(&h, N * 4, cudaHostAllocPortable));
  sync_all(2);
  CK(cudaSetDevice(0));
  cudaStream_t s, t;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  cudaEvent_t e, f;
  CK(cudaSetDevice(0));
  CK(cudaEventCreate(&e));
  CK(cudaSetDevice(1));
  CK(cudaEventCreate(&f));
  for (int k = 0; k < K; ++k) {
    CK(cudaSetDevice(0));
    if (k) CK(cudaStreamWaitEvent(s, f, 0));
    Make<<<1, 128, 0, s>>>(a, k);
    CK(cudaMemcpyAsync(h, a, N * 4, cudaMemcpyDeviceToHost, s));
    if (BUG == 2)
      twice(h);
    else
      CK(cudaLaunchHostFunc(s, twice, h));
    CK(cudaEventRecord(e, s));
    CK(cudaSetDevice(1));
    if (BUG != 1) CK(cudaStreamWaitEvent(t, e, 0));
    CK(cudaMemcpyAsync(b, h, N * 4, cudaMemcpyHostToDevice, t));
    Use<<<1, 128, 0, t>>>(b, out[k]);
    CK(cudaEventRecord(f, t));
  }
  sync_all(2);
  long wrong = 0;
  for (int k = 0; k < K; ++k) {
    auto v = get(1, out[k], N);
    for (int i = 0; i < N; ++i) wrong += v[i] != 2 * (i + k);
  }
  CK(cudaEventDestroy(f));
  CK(cudaStreamDestroy(t));
  CK(cudaSetDevice(0));
  CK(cudaEventDestroy(e));
  CK(cudaStreamDestroy(s));
  CK(cudaFreeHost(h));
  return finish(wrong, 2);
}
