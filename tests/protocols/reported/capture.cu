// Stream capture over three streams of two devices with fork and join by events; the graph is launched back to back.
// EXPECT 1 race: the branch is forked before the kernel whose result it reads
// EXPECT 2 race: the join waits for an older record of the branch (event recorded too early)
#include "common.h"
constexpr int N = 1024, L = 4;
__global__ void Step(int* p, const int* q, int k) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) p[i] = q[i] + k;
}
int main() {
  peers(2);
  int *a = alloc<int>(0, N), *b = alloc<int>(0, N), *c = alloc<int>(1, N), *d = alloc<int>(0, N);
  sync_all(2);
  CK(cudaSetDevice(0));
  cudaStream_t s, t, u;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&u, cudaStreamNonBlocking));
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  cudaEvent_t f, j, h;
  CK(cudaEventCreate(&j));
  CK(cudaSetDevice(0));
  CK(cudaEventCreate(&f));
  CK(cudaEventCreate(&h));
  CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  if (BUG == 1) CK(cudaEventRecord(f, s));
  Step<<<1, 128, 0, s>>>(b, a, 1);
  if (BUG != 1) CK(cudaEventRecord(f, s));
  CK(cudaStreamWaitEvent(t, f, 0));
  CK(cudaStreamWaitEvent(u, f, 0));
  CK(cudaSetDevice(1));
  if (BUG == 2) CK(cudaEventRecord(j, t));
  Step<<<1, 128, 0, t>>>(c, b, 1);
  if (BUG != 2) CK(cudaEventRecord(j, t));
  CK(cudaSetDevice(0));
  CK(cudaMemcpyAsync(d, b, N * 4, cudaMemcpyDefault, u));
  CK(cudaEventRecord(h, u));
  CK(cudaStreamWaitEvent(s, j, 0));
  CK(cudaStreamWaitEvent(s, h, 0));
  if (BUG == 2) {
    cudaEvent_t k;
    CK(cudaSetDevice(1));
    CK(cudaEventCreate(&k));
    CK(cudaEventRecord(k, t));
    CK(cudaSetDevice(0));
    Step<<<1, 128, 0, s>>>(a, c, 1);
    CK(cudaStreamWaitEvent(s, k, 0));
    CK(cudaEventDestroy(k));
  } else
    Step<<<1, 128, 0, s>>>(a, c, 1);
  cudaGraph_t g;
  CK(cudaStreamEndCapture(s, &g));
  cudaGraphExec_t x;
  CK(cudaGraphInstantiate(&x, g, 0));
  for (int l = 0; l < L; ++l) CK(cudaGraphLaunch(x, s));
  sync_all(2);
  long wrong = 0;
  auto v = get(0, a, N);
  auto w = get(0, d, N);
  for (int i = 0; i < N; ++i) wrong += v[i] != 3 * L || w[i] != 3 * L - 2;
  CK(cudaGraphExecDestroy(x));
  CK(cudaGraphDestroy(g));
  CK(cudaEventDestroy(f));
  CK(cudaEventDestroy(h));
  CK(cudaStreamDestroy(s));
  CK(cudaStreamDestroy(u));
  CK(cudaSetDevice(1));
  CK(cudaEventDestroy(j));
  CK(cudaStreamDestroy(t));
  return finish(wrong, 2);
}
