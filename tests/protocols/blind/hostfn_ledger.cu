// Host functions between kernels: device 0 writes raw values to pinned memory, a host function of its stream turns them
// into parameters in pinned memory for a kernel of device 1; events order both streams in both directions.
// EXPECT 1 hostrace|race: the event is recorded before the host function, the kernel of device 1 does not wait for it
// EXPECT 2 hostrace|race: the host function is in the stream of device 1 but reads raw values without waiting for them
// EXPECT 3 hostrace|race: the host function rewrites parameters which the kernel of the epoch before may still read
// EXPECT 4 none: the host synchronises with device 1 only, whose stream has waited for every host function of device 0
// EXPECT 5 hostrace: the host reads the raw values of the last epoch without synchronising
// EXPECT 6 none: the host waits for an atomic counter set by host functions, which run after the kernels before them
#include <atomic>
#include <thread>

#include "common.h"

static const int D = 2, N = 64, EPOCHS = 4;

struct Ledger {
  unsigned *raw, *params;
  std::atomic<int> entries;
};

static __global__ void produce(unsigned* raw, unsigned e) { raw[threadIdx.x] = e * threadIdx.x; }

static __global__ void consume(const unsigned* params, unsigned* total) {
  total[threadIdx.x] += params[threadIdx.x];
}

static void CUDART_CB book(void* arg) {
  Ledger* l = static_cast<Ledger*>(arg);
  for (int i = 0; i < N; ++i) l->params[i] = l->raw[i] + 7;
  l->entries.fetch_add(1, std::memory_order_release);
}

int main() {
  peers(D);
  Ledger l;
  l.entries = 0;
  unsigned* total = alloc<unsigned>(1, N);
  cudaStream_t s[D];
  cudaEvent_t booked, consumed;
  CK(cudaHostAlloc(&l.raw, N * sizeof(unsigned), cudaHostAllocMapped | cudaHostAllocPortable));
  CK(cudaHostAlloc(&l.params, N * sizeof(unsigned), cudaHostAllocMapped | cudaHostAllocPortable));
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    CK(cudaStreamCreateWithFlags(&s[d], cudaStreamNonBlocking));
    CK(cudaEventCreateWithFlags(d == 0 ? &booked : &consumed, cudaEventDisableTiming));
  }
  sync_all(D);

  for (int e = 0; e < EPOCHS; ++e) {
    CK(cudaSetDevice(0));
    if (e > 0 && BUG != 3) CK(cudaStreamWaitEvent(s[0], consumed, 0));
    produce<<<1, N, 0, s[0]>>>(l.raw, e);
    if (BUG == 1) CK(cudaEventRecord(booked, s[0]));
    CK(cudaLaunchHostFunc(s[BUG == 2 ? 1 : 0], book, &l));
    if (BUG != 1 && BUG != 2) CK(cudaEventRecord(booked, s[0]));
    CK(cudaSetDevice(1));
    if (BUG != 2) CK(cudaStreamWaitEvent(s[1], booked, 0));
    consume<<<1, N, 0, s[1]>>>(l.params, total);
    CK(cudaEventRecord(consumed, s[1]));
  }
#if BUG == 4
  CK(cudaStreamSynchronize(s[1]));
#elif BUG == 6
  while (l.entries.load(std::memory_order_acquire) != EPOCHS) std::this_thread::yield();
#elif BUG != 5
  sync_all(D);
#endif
  long wrong = 0;
  for (unsigned i = 0; i < N; ++i) wrong += l.raw[i] != (EPOCHS - 1) * i;
  sync_all(D);
  std::vector<unsigned> v = get(1, total, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != (0 + 1 + 2 + 3) * i + 7 * EPOCHS;
  for (int d = 0; d < D; ++d) CK(cudaStreamDestroy(s[d]));
  CK(cudaEventDestroy(booked));
  CK(cudaEventDestroy(consumed));
  CK(cudaFreeHost(l.raw));
  CK(cudaFreeHost(l.params));
  return finish(wrong, D);
}
