// Mutual exclusion of two devices after Dekker: set my flag, fence.sc, look at the other's flag. Device 0 insists,
// device 1 retreats and tries again; the critical section updates an array with ordinary accesses.
// EXPECT 1 race|value: no fence.sc between the store of my flag and the load of the other on device 1, both may enter
// EXPECT 2 race|value: fence.acq_rel does not order a store before a later load, both may read 0
// EXPECT 3 scope|race|value: fence.sc.gpu is not morally strong with a fence on another device
// EXPECT 4 race: the flag is cleared by a relaxed store at the end, the critical section is not released
// EXPECT 5 race: the other's flag is read by relaxed loads without a fence
// EXPECT 6 none: device 1 fences twice and retreats through a fence and a relaxed store
#include "common.h"

static const int D = 2, N = 8, ROUNDS = 5;

DEV void fence_sc(int rank) {
#if BUG == 1
  if (rank == 0) asm volatile("fence.sc.sys;" ::: "memory");
#elif BUG == 2
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#elif BUG == 3
  asm volatile("fence.sc.gpu;" ::: "memory");
#else
  asm volatile("fence.sc.sys;" ::: "memory");
  if (BUG == 6 && rank == 1) asm volatile("fence.sc.sys;" ::: "memory");
#endif
}

DEV unsigned look(const unsigned* flag) { return BUG == 5 ? ld_relaxed(flag) : ld_acquire(flag); }

DEV void enter(unsigned* mine, unsigned* other, int rank) {
  for (;;) {
    st_relaxed(mine, 1);
    fence_sc(rank);
    if (rank == 0) {
      while (look(other) != 0) {
      }
      return;
    }
    if (look(other) == 0) return;
#if BUG == 6
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    st_relaxed(mine, 0);
#else
    st_release(mine, 0);
#endif
    while (look(other) != 0) {
    }
  }
}

static __global__ void work(unsigned* mine, unsigned* other, unsigned* data, int rank) {
  for (int r = 0; r < ROUNDS; ++r) {
    enter(mine, other, rank);
    for (int i = 0; i < N; ++i) data[i] += i + 1;
#if BUG == 4
    st_relaxed(mine, 0);
#else
    st_release(mine, 0);
#endif
  }
}

int main() {
  peers(D);
  unsigned *flag[D] = {alloc<unsigned>(0, 1), alloc<unsigned>(1, 1)}, *data = alloc<unsigned>(0, N);
  sync_all(D);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int d = 0; d < D; ++d) {
      CK(cudaSetDevice(d));
      work<<<1, 1>>>(flag[d], flag[1 - d], data, d);
    }
    sync_all(D);
  }
  long wrong = 0;
  std::vector<unsigned> v = get(0, data, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != 2 * D * ROUNDS * (i + 1);
  return finish(wrong, D);
}
