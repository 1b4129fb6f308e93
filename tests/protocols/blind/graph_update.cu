// A graph "copy a table from pinned memory, then push it to a slot on device 1" whose nodes get new parameters between
// launches (two slots, a table per epoch); a consumer stream on device 1 adds up the slots.
// EXPECT 1 race: the consumer does not wait for the launch that fills its slot
// EXPECT 2 race: nothing orders the refill of a slot after the consumer of two epochs before
// EXPECT 3 hostrace: the host rewrites the one pinned table while earlier launches may not have copied it yet
// EXPECT 4 none: the host rewrites the one pinned table, but after synchronising with the stream of the launch
// EXPECT 5 race: the kernel node keeps one slot, but its reuse waits only for the consumer of two epochs before
#include "common.h"

static const int D = 2, N = 128, EPOCHS = 5;

static __global__ void push(const unsigned* table, unsigned* slot, unsigned add) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  slot[i] = table[i] + add;
}

static __global__ void consume(const unsigned* slot, unsigned* total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  total[i] += slot[i];
}

int main() {
  peers(D);
  const size_t bytes = N * sizeof(unsigned);
  unsigned *slots = alloc<unsigned>(1, 2 * N), *total = alloc<unsigned>(1, N),
           *table = alloc<unsigned>(0, N), *host;
  cudaStream_t producer, consumer;
  cudaEvent_t filled, consumed[2];
  CK(cudaHostAlloc(&host, EPOCHS * bytes, cudaHostAllocPortable));
  CK(cudaStreamCreateWithFlags(&producer, cudaStreamNonBlocking));
  CK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking));
  for (int b = 0; b < 2; ++b) CK(cudaEventCreateWithFlags(&consumed[b], cudaEventDisableTiming));
  sync_all(D);

  CK(cudaSetDevice(0));
  cudaGraph_t g;
  cudaGraphExec_t exec;
  cudaGraphNode_t copied, pushed;
  unsigned *slot = slots, add = 0;
  void* args[] = {&table, &slot, &add};
  cudaKernelNodeParams p = {};
  p.func = reinterpret_cast<void*>(push);
  p.gridDim = dim3(2);
  p.blockDim = dim3(N / 2);
  p.kernelParams = args;
  CK(cudaGraphCreate(&g, 0));
  CK(cudaGraphAddMemcpyNode1D(&copied, g, nullptr, 0, table, host, bytes, cudaMemcpyHostToDevice));
  CK(cudaGraphAddKernelNode(&pushed, g, &copied, 1, &p));
  CK(cudaGraphInstantiate(&exec, g, 0));

  for (int e = 0; e < EPOCHS; ++e) {
    bool one_table = BUG == 3 || BUG == 4;
    unsigned* from = one_table ? host : host + e * N;
    if (BUG == 4) CK(cudaStreamSynchronize(producer));
    for (int i = 0; i < N; ++i) from[i] = e * i;
    slot = BUG == 5 ? slots : slots + e % 2 * N;
    add = e;
    CK(cudaSetDevice(0));
    CK(cudaGraphExecKernelNodeSetParams(exec, pushed, &p));
    if (!one_table)
      CK(cudaGraphExecMemcpyNodeSetParams1D(exec, copied, table, from, bytes,
                                            cudaMemcpyHostToDevice));
    if (e >= 2 && BUG != 2) CK(cudaStreamWaitEvent(producer, consumed[e % 2], 0));
    CK(cudaGraphLaunch(exec, producer));
    CK(cudaEventRecord(filled, producer));
    CK(cudaSetDevice(1));
    if (BUG != 1) CK(cudaStreamWaitEvent(consumer, filled, 0));
    consume<<<2, N / 2, 0, consumer>>>(slot, total);
    CK(cudaEventRecord(consumed[e % 2], consumer));
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(1, total, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != (0 + 1 + 2 + 3 + 4) * (i + 1);
  CK(cudaGraphExecDestroy(exec));
  CK(cudaGraphDestroy(g));
  CK(cudaStreamDestroy(producer));
  CK(cudaStreamDestroy(consumer));
  for (cudaEvent_t ev : {filled, consumed[0], consumed[1]}) CK(cudaEventDestroy(ev));
  CK(cudaFreeHost(host));
  return finish(wrong, D);
}
