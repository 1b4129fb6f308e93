// A captured graph: the origin stream (device 0) produces, forks to a stream of device 1 that transforms into a buffer
// of device 0, joins, consumes; the graph is launched several times, then a plain kernel reads the totals.
// EXPECT 1 race: the consumer is captured before the origin stream waits for the join event
// EXPECT 2 race: the fork event is captured before the producer, the branch does not depend on it
// EXPECT 3 race: two executable graphs made from one graph run in two streams on the same buffers
// EXPECT 4 none: one executable graph is launched into two streams: launches of it never overlap and keep their order
// EXPECT 5 race: the reader runs in the forked stream, which after the capture has no order with launches of the graph
#include "common.h"

static const int D = 2, N = 128, LAUNCHES = 4;

static __global__ void produce(unsigned* x, unsigned* epoch) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] += i;
  if (i == 0) ++*epoch;
}

static __global__ void transform(const unsigned* x, unsigned* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 2 * x[i];
}

static __global__ void consume(const unsigned* y, unsigned* total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  total[i] += y[i];
}

int main() {
  peers(D);
  unsigned *x = alloc<unsigned>(0, N), *y = alloc<unsigned>(0, N), *total = alloc<unsigned>(0, N);
  unsigned *epoch = alloc<unsigned>(0, 1), *out = alloc<unsigned>(1, N);
  cudaStream_t origin, branch, second;
  cudaEvent_t fork, join, last;
  CK(cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking));
  CK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CK(cudaSetDevice(0));
  CK(cudaStreamCreateWithFlags(&origin, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  CK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CK(cudaEventCreateWithFlags(&last, cudaEventDisableTiming));
  sync_all(D);

  CK(cudaSetDevice(0));
  CK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal));
  if (BUG == 2) CK(cudaEventRecord(fork, origin));
  produce<<<2, N / 2, 0, origin>>>(x, epoch);
  if (BUG != 2) CK(cudaEventRecord(fork, origin));
  CK(cudaSetDevice(1));
  CK(cudaStreamWaitEvent(branch, fork, 0));
  transform<<<2, N / 2, 0, branch>>>(x, y);
  CK(cudaEventRecord(join, branch));
  CK(cudaSetDevice(0));
  if (BUG != 1) CK(cudaStreamWaitEvent(origin, join, 0));
  consume<<<2, N / 2, 0, origin>>>(y, total);
  if (BUG == 1) CK(cudaStreamWaitEvent(origin, join, 0));
  cudaGraph_t g;
  cudaGraphExec_t exec, exec2;
  CK(cudaStreamEndCapture(origin, &g));
  CK(cudaGraphInstantiate(&exec, g, 0));
  CK(cudaGraphInstantiate(&exec2, g, 0));

  for (int e = 0; e < LAUNCHES; ++e) {
    bool other = (BUG == 3 || BUG == 4) && e % 2 == 0;
    CK(cudaGraphLaunch(BUG == 3 && other ? exec2 : exec, other ? second : origin));
  }
  CK(cudaEventRecord(last, origin));
  if (BUG != 5) CK(cudaStreamWaitEvent(branch, last, 0));
  CK(cudaSetDevice(1));
  transform<<<2, N / 2, 0, branch>>>(total, out);
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(1, out, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != 2 * 2 * (1 + 2 + 3 + 4) * i;
  CK(cudaGraphExecDestroy(exec));
  CK(cudaGraphExecDestroy(exec2));
  CK(cudaGraphDestroy(g));
  for (cudaStream_t s : {origin, branch, second}) CK(cudaStreamDestroy(s));
  for (cudaEvent_t ev : {fork, join, last}) CK(cudaEventDestroy(ev));
  return finish(wrong, D);
}
