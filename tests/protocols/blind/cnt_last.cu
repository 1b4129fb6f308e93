// The last arriver reduces: blocks of 3 devices write partial sums to device 0 and count themselves by a system-wide
// atomic, the block that comes last adds everything up and resets the counter for the next launch.
// EXPECT 1 race: no fence between the block barrier and the relaxed atomic, partial sums are not released
// EXPECT 2 race: no fence after the atomic of the last arriver, partial sums are not acquired
// EXPECT 3 scope: the counter is increased by atomicAdd, which is atomic only within a device
// EXPECT 4 scope|race: fences of gpu scope, but partial sums cross devices
// EXPECT 5 race: every thread fences before the barrier, the thread that counts does not fence after it
// EXPECT 6 none: the counter is reset by an ordinary store of the last arriver, after all others have counted
#include "common.h"

static const int D = 3, BLOCKS = 2, N = 32, EPOCHS = 3;

DEV void fence() {
#if BUG == 4
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#else
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

static __global__ void reduce(unsigned* parts, unsigned* count, unsigned* result, unsigned rank,
                              unsigned epoch) {
  __shared__ bool last;
  unsigned i = threadIdx.x, block = rank * BLOCKS + blockIdx.x;
  parts[block * N + i] = (block + 1) * (epoch + i);
  if (BUG == 5) fence();
  __syncthreads();
  if (i == 0) {
    if (BUG != 1 && BUG != 5) fence();
#if BUG == 3
    unsigned before = atomicAdd(count, 1);
#else
    unsigned before = atomicAdd_system(count, 1);
#endif
    last = before == D * BLOCKS - 1;
    if (last && BUG != 2) fence();
  }
  __syncthreads();
  if (!last) return;
  unsigned sum = 0;
  for (unsigned b = 0; b < D * BLOCKS; ++b) sum += parts[b * N + i];
  result[epoch * N + i] = sum;
  if (i == 0) {
    if (BUG == 6)
      *count = 0;
    else
      st_relaxed(count, 0);
  }
}

int main() {
  peers(D);
  unsigned *parts = alloc<unsigned>(0, D * BLOCKS * N), *count = alloc<unsigned>(0, 1);
  unsigned* result = alloc<unsigned>(1, EPOCHS * N);
  sync_all(D);
  for (unsigned e = 0; e < EPOCHS; ++e) {
    for (unsigned d = 0; d < D; ++d) {
      CK(cudaSetDevice(d));
      reduce<<<BLOCKS, N>>>(parts, count, result, d, e);
    }
    sync_all(D);
  }
  long wrong = 0;
  std::vector<unsigned> v = get(1, result, EPOCHS * N);
  for (unsigned i = 0; i < EPOCHS * N; ++i)
    wrong += v[i] != (1 + 2 + 3 + 4 + 5 + 6) * (i / N + i % N);
  return finish(wrong, D);
}
