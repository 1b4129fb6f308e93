// Devices 1 to 3 add to an accumulator on device 0 by system-wide atomics; device 0 copies the sums out and clears the
// accumulator by cudaMemsetAsync for the next epoch; events order adders, copy and memset.
// EXPECT 1 race: the memset runs in another stream, nothing orders it after the copy that reads the sums
// EXPECT 2 race: "cleared" is recorded before the memset, adders of the next epoch may run beside it
// EXPECT 3 race: cudaMemset uses the legacy stream, which neither waits for non-blocking streams nor they for it
// EXPECT 4 scope: atomicAdd has device scope, but adders run on different devices
// EXPECT 5 race: the copy out waits for the adders of devices 1 and 2 only
// EXPECT 6 none: adders 2 and 3 wait for no event but run after adder 1, which has waited
#include "common.h"

static const int D = 4, N = 64, EPOCHS = 4;

static __global__ void adder(unsigned* sums, unsigned v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#if BUG == 4
  atomicAdd(&sums[i % N], v + i);
#else
  atomicAdd_system(&sums[i % N], v + i);
#endif
}

int main() {
  peers(D);
  unsigned* sums = alloc<unsigned>(0, N);
  unsigned* results = alloc<unsigned>(0, N * EPOCHS);
  cudaStream_t s[D], other;
  cudaEvent_t added[D], cleared;
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    CK(cudaStreamCreateWithFlags(&s[d], cudaStreamNonBlocking));
    CK(cudaEventCreateWithFlags(&added[d], cudaEventDisableTiming));
  }
  CK(cudaSetDevice(0));
  CK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CK(cudaEventCreateWithFlags(&cleared, cudaEventDisableTiming));
  sync_all(D);

  for (int e = 0; e < EPOCHS; ++e) {
    for (int d = 1; d < D; ++d) {
      CK(cudaSetDevice(d));
      if (e > 0 && (BUG != 6 || d == 1)) CK(cudaStreamWaitEvent(s[d], cleared, 0));
      if (BUG == 6 && d > 1) CK(cudaStreamWaitEvent(s[d], added[d - 1], 0));
      adder<<<2, N, 0, s[d]>>>(sums, e * d);
      CK(cudaEventRecord(added[d], s[d]));
    }
    CK(cudaSetDevice(0));
    for (int d = 1; d < (BUG == 5 ? D - 1 : D); ++d) CK(cudaStreamWaitEvent(s[0], added[d], 0));
    CK(cudaMemcpyAsync(results + e * N, sums, N * sizeof(unsigned), cudaMemcpyDeviceToDevice,
                       s[0]));
#if BUG == 1
    for (int d = 1; d < D; ++d) CK(cudaStreamWaitEvent(other, added[d], 0));
    CK(cudaMemsetAsync(sums, 0, N * sizeof(unsigned), other));
    CK(cudaEventRecord(cleared, other));
#elif BUG == 2
    CK(cudaEventRecord(cleared, s[0]));
    CK(cudaMemsetAsync(sums, 0, N * sizeof(unsigned), s[0]));
#elif BUG == 3
    CK(cudaMemset(sums, 0, N * sizeof(unsigned)));
    CK(cudaEventRecord(cleared, s[0]));
#else
    CK(cudaMemsetAsync(sums, 0, N * sizeof(unsigned), s[0]));
    CK(cudaEventRecord(cleared, s[0]));
#endif
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(0, results, N * EPOCHS);
  for (unsigned i = 0; i < N * EPOCHS; ++i)
    wrong += v[i] != 3 * (2 * (i % N) + N) + 2 * (i / N) * 6;
  for (int d = 0; d < D; ++d) {
    CK(cudaStreamDestroy(s[d]));
    CK(cudaEventDestroy(added[d]));
  }
  CK(cudaStreamDestroy(other));
  CK(cudaEventDestroy(cleared));
  return finish(wrong, D);
}
