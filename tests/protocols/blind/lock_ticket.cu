// A ticket lock on device 0 for two blocks on each of 3 devices: a holder's block adds to an array on device 1 with
// ordinary accesses. Tickets come from a system-wide atomic, the holder releases "serving", the next acquires it.
// EXPECT 1 race: the lock is passed on by a relaxed store without a fence
// EXPECT 2 race: "serving" is polled by relaxed loads without a fence
// EXPECT 3 scope: "serving" is released at gpu scope, the next holder may be on another device
// EXPECT 4 scope: tickets are drawn by atomicAdd, which is atomic only within a device
// EXPECT 5 none: relaxed poll followed by __threadfence_system, and __threadfence_system followed by a relaxed store
// EXPECT 6 race: no block barrier before the lock is passed on, other threads may still be inside
#include "common.h"

static const int D = 3, BLOCKS = 2, N = 64, ROUNDS = 3;

struct Lock {
  unsigned next, serving;
};

DEV unsigned acquire(Lock* l) {
#if BUG == 4
  unsigned mine = atomicAdd(&l->next, 1);
#else
  unsigned mine = atomicAdd_system(&l->next, 1);
#endif
#if BUG == 2 || BUG == 5
  while (ld_relaxed(&l->serving) != mine) {
  }
  if (BUG == 5) __threadfence_system();
#else
  while (ld_acquire(&l->serving) != mine) {
  }
#endif
  return mine;
}

DEV void release(Lock* l, unsigned mine) {
#if BUG == 1
  st_relaxed(&l->serving, mine + 1);
#elif BUG == 3
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(&l->serving), "r"(mine + 1) : "memory");
#elif BUG == 5
  __threadfence_system();
  st_relaxed(&l->serving, mine + 1);
#else
  st_release(&l->serving, mine + 1);
#endif
}

static __global__ void work(Lock* l, unsigned* data) {
  for (int r = 0; r < ROUNDS; ++r) {
    unsigned mine = 0;
    if (threadIdx.x == 0) mine = acquire(l);
    __syncthreads();
    data[threadIdx.x] += threadIdx.x + 1;
    if (BUG != 6) __syncthreads();
    if (threadIdx.x == 0) release(l, mine);
  }
}

int main() {
  peers(D);
  Lock* l = alloc<Lock>(0, 1);
  unsigned* data = alloc<unsigned>(1, N);
  sync_all(D);
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    work<<<BLOCKS, N>>>(l, data);
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(1, data, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != D * BLOCKS * ROUNDS * (i + 1);
  wrong += get(0, l, 1)[0].serving != D * BLOCKS * ROUNDS;
  return finish(wrong, D);
}
