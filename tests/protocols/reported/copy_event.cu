// A pipeline over two devices: kernel on 0, peer copy on its stream, event, kernel on 1; two staging buffers in turn.
// EXPECT 1 race: event recorded before the copy
// EXPECT 2 race: stream waits for the event before it is recorded
// EXPECT 3 race: nobody waits for the consumer before the staging buffer is overwritten
// EXPECT 4 race: consumer runs in a stream that does not wait
#include "common.h"
constexpr int N = 4096, K = 6;
__global__ void Make(int* p, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) p[i] = k * N + i;
}
__global__ void Use(const int* p, int* out, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) out[k * N + i] = p[i] * 2;
}
int main() {
  peers(2);
  int* src[2] = {alloc<int>(0, N), alloc<int>(0, N)};
  int* dst[2] = {alloc<int>(1, N), alloc<int>(1, N)};
  int* out = alloc<int>(1, K * N);
  sync_all(2);
  cudaStream_t a, b, c;
  CK(cudaSetDevice(0));
  CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
  cudaEvent_t full[2], empty[2];
  for (int i = 0; i < 2; ++i) {
    CK(cudaSetDevice(0));
    CK(cudaEventCreateWithFlags(&full[i], cudaEventDisableTiming));
    CK(cudaSetDevice(1));
    CK(cudaEventCreateWithFlags(&empty[i], cudaEventDisableTiming));
  }
  for (int k = 0; k < K; ++k) {
    const int s = k % 2;
    CK(cudaSetDevice(0));
    Make<<<N / 256, 256, 0, a>>>(src[s], k);
    if (k >= 2 && BUG != 3) CK(cudaStreamWaitEvent(a, empty[s], 0));
    if (BUG == 1) CK(cudaEventRecord(full[s], a));
    if (BUG == 2) CK(cudaStreamWaitEvent(b, full[s], 0));
    CK(cudaMemcpyPeerAsync(dst[s], 1, src[s], 0, N * sizeof(int), a));
    if (BUG != 1) CK(cudaEventRecord(full[s], a));
    CK(cudaSetDevice(1));
    if (BUG != 2) CK(cudaStreamWaitEvent(b, full[s], 0));
    Use<<<N / 256, 256, 0, BUG == 4 ? c : b>>>(dst[s], out, k);
    CK(cudaEventRecord(empty[s], b));
  }
  sync_all(2);
  long wrong = 0;
  auto v = get(1, out, K * N);
  for (int i = 0; i < K * N; ++i) wrong += v[i] != 2 * i;
  for (int i = 0; i < 2; ++i) {
    CK(cudaEventDestroy(full[i]));
    CK(cudaEventDestroy(empty[i]));
  }
  CK(cudaStreamDestroy(b));
  CK(cudaStreamDestroy(c));
  CK(cudaSetDevice(0));
  CK(cudaStreamDestroy(a));
  return finish(wrong, 2);
}
