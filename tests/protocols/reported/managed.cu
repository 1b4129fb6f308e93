// Managed memory that two devices work on, half each, then device 0 adds up both halves.
// EXPECT 1 race: device 0 does not wait for device 1
// EXPECT 2 race: halves overlap by one element
// EXPECT 3 hostrace: host reads before the devices are done
#include "common.h"
constexpr int N = 8192;
__global__ void Fill(int* p, int from, int to) {
  for (int i = from + threadIdx.x; i < to; i += blockDim.x) p[i] = i;
}
__global__ void Sum(const int* p, int* out) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  int v = 0;
  for (int i = threadIdx.x; i < N; i += blockDim.x) v += p[i];
  atomicAdd(&s, v);
  __syncthreads();
  if (threadIdx.x == 0) *out = s;
}
int main() {
  peers(2);
  int *m, *out;
  CK(cudaMallocManaged(&m, N * 4));
  CK(cudaMallocManaged(&out, 4));
  std::memset(m, 0, N * 4);
  *out = 0;
  sync_all(2);
  cudaEvent_t e;
  CK(cudaSetDevice(1));
  CK(cudaEventCreate(&e));
  Fill<<<1, 128>>>(m, BUG == 2 ? N / 2 - 1 : N / 2, N);
  CK(cudaEventRecord(e));
  CK(cudaSetDevice(0));
  Fill<<<1, 128>>>(m, 0, N / 2);
  if (BUG != 1) CK(cudaStreamWaitEvent(0, e, 0));
  Sum<<<1, 128>>>(m, out);
  if (BUG != 3) sync_all(2);
  const int got = *(volatile int*)out;
  sync_all(2);
  CK(cudaEventDestroy(e));
  CK(cudaFree(m));
  CK(cudaFree(out));
  return finish(got != N * (N - 1) / 2, 2);
}
