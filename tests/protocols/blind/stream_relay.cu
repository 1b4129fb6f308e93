// Relay over 3 devices: the stage of device d reads its inbox and writes the inbox of d + 1, one stream per device; a
// "ready" event per stage orders it before the next stage, and a "done" event lets the inbox be filled again.
// EXPECT 1 race: no cudaStreamWaitEvent between the streams, nothing orders the stage before its successor
// EXPECT 2 race: the event is recorded before the stage is launched, so it covers only earlier work of the stream
// EXPECT 3 race: the stage waits for an event of its own stream instead of that of its predecessor
// EXPECT 4 race: nothing orders the overwriting of an inbox after the reads of the epoch before
// EXPECT 5 none: waits only for the stage after it, which itself waited for the predecessor: event order is transitive
#include "common.h"

static const int D = 3, N = 128, EPOCHS = 4;

static __global__ void stage(const unsigned* in, unsigned* out, unsigned add) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] + add;
}

static __global__ void source(unsigned* out, unsigned epoch) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = epoch * 1000 + i;
}

int main() {
  peers(D);
  unsigned* inbox[D + 1];
  cudaStream_t s[D];
  cudaEvent_t ready[D], done[D];
  for (int d = 0; d < D; ++d) {
    inbox[d] = alloc<unsigned>(d, N);
    CK(cudaStreamCreateWithFlags(&s[d], cudaStreamNonBlocking));
    CK(cudaEventCreateWithFlags(&ready[d], cudaEventDisableTiming));
    CK(cudaEventCreateWithFlags(&done[d], cudaEventDisableTiming));
  }
  CK(cudaSetDevice(0));
  inbox[D] = alloc<unsigned>(D - 1, N * EPOCHS);
  sync_all(D);

  for (int e = 0; e < EPOCHS; ++e) {
    CK(cudaSetDevice(0));
    source<<<2, N / 2, 0, s[0]>>>(inbox[0], e);
    for (int d = 0; d < D; ++d) {
      CK(cudaSetDevice(d));
      unsigned* out = d == D - 1 ? inbox[D] + e * N : inbox[d + 1];
#if BUG == 3
      if (d > 0 && e > 0) CK(cudaStreamWaitEvent(s[d], ready[d], 0));
#elif BUG != 1
      if (d > 0) CK(cudaStreamWaitEvent(s[d], ready[d - 1], 0));
#endif
#if BUG == 5
      // The last stage has waited for every other stage of its epoch; its own epoch e - 1 came before.
      if (d < D - 1 && e > 0) CK(cudaStreamWaitEvent(s[d], done[D - 1], 0));
#elif BUG != 4
      if (d < D - 1 && e > 0) CK(cudaStreamWaitEvent(s[d], done[d + 1], 0));
#endif
#if BUG == 2
      CK(cudaEventRecord(ready[d], s[d]));
#endif
      stage<<<2, N / 2, 0, s[d]>>>(inbox[d], out, d + 1);
#if BUG != 2
      CK(cudaEventRecord(ready[d], s[d]));
#endif
      CK(cudaEventRecord(done[d], s[d]));
    }
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(D - 1, inbox[D], N * EPOCHS);
  for (int i = 0; i < N * EPOCHS; ++i) wrong += v[i] != i / N * 1000 + i % N + 6u;
  for (int d = 0; d < D; ++d) {
    CK(cudaStreamDestroy(s[d]));
    CK(cudaEventDestroy(ready[d]));
    CK(cudaEventDestroy(done[d]));
  }
  return finish(wrong, D);
}
