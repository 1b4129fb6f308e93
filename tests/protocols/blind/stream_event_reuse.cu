// Two producer streams of device 0 fill halves of a buffer on device 1 whose stream reduces it; few events are recorded
// again in every epoch: a wait refers to the record that was most recent when cudaStreamWaitEvent was called.
// EXPECT 1 race: both producers record one event before the wait, which covers the second record only
// EXPECT 2 race: waits are issued before the records of this epoch, they refer to the epoch before (first to nothing)
// EXPECT 3 none: one event, but a wait is called after each record: both records are waited for
// EXPECT 4 none: events are destroyed and created anew after the waits; pending waits stay valid
// EXPECT 5 race: producers wait for the "consumed" event, which is recorded before the reduction of the epoch
#include "common.h"

static const int D = 2, N = 128, EPOCHS = 4;

static __global__ void produce(unsigned* half, unsigned v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  half[i] = v * i;
}

static __global__ void reduce(const unsigned* buf, unsigned* total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  total[i] += buf[i] + buf[i + N];
}

static void event(int dev, cudaEvent_t* ev) {
  CK(cudaSetDevice(dev));
  CK(cudaEventCreateWithFlags(ev, cudaEventDisableTiming));
}

int main() {
  peers(D);
  unsigned* buf = alloc<unsigned>(1, 2 * N);
  unsigned* total = alloc<unsigned>(1, N);
  cudaStream_t s[2], reducer;
  cudaEvent_t filled[2], consumed;
  CK(cudaStreamCreateWithFlags(&reducer, cudaStreamNonBlocking));
  event(1, &consumed);
  for (int p = 0; p < 2; ++p) {
    event(0, &filled[p]);
    CK(cudaStreamCreateWithFlags(&s[p], cudaStreamNonBlocking));
  }
  sync_all(D);

  for (int e = 0; e < EPOCHS; ++e) {
    CK(cudaSetDevice(0));
    if (BUG == 2)
      for (int p = 0; p < 2; ++p) CK(cudaStreamWaitEvent(reducer, filled[p], 0));
    for (int p = 0; p < 2; ++p) {
      cudaEvent_t ev = filled[BUG == 1 || BUG == 3 ? 0 : p];
      if (e > 0) CK(cudaStreamWaitEvent(s[p], consumed, 0));
      produce<<<2, N / 2, 0, s[p]>>>(buf + p * N, e + p);
      CK(cudaEventRecord(ev, s[p]));
      if (BUG == 3) CK(cudaStreamWaitEvent(reducer, ev, 0));
    }
    if (BUG == 0 || BUG == 4 || BUG == 5)
      for (int p = 0; p < 2; ++p) CK(cudaStreamWaitEvent(reducer, filled[p], 0));
    if (BUG == 1) CK(cudaStreamWaitEvent(reducer, filled[0], 0));
    if (BUG == 4) {
      for (int p = 0; p < 2; ++p) {
        CK(cudaEventDestroy(filled[p]));
        event(0, &filled[p]);
      }
    }
    CK(cudaSetDevice(1));
    if (BUG == 5) CK(cudaEventRecord(consumed, reducer));
    reduce<<<2, N / 2, 0, reducer>>>(buf, total);
    if (BUG != 5) CK(cudaEventRecord(consumed, reducer));
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(1, total, N);
  for (int i = 0; i < N; ++i) wrong += v[i] != (2u * (0 + 1 + 2 + 3) + EPOCHS) * i;
  for (int p = 0; p < 2; ++p) {
    CK(cudaStreamDestroy(s[p]));
    CK(cudaEventDestroy(filled[p]));
  }
  CK(cudaStreamDestroy(reducer));
  CK(cudaEventDestroy(consumed));
  return finish(wrong, D);
}
