// Lamport's bakery between three devices: announce, take a number larger than all, look at everybody else.
// EXPECT 1 race|value: no fence.sc between the own number and the looks at the others
// EXPECT 2 race|value: fence.acq_rel instead of fence.sc everywhere
// EXPECT 3 race|value: nobody waits for those who are choosing
// EXPECT 4 race: the number is cleared by a relaxed store
// EXPECT 5 none: fence.sc also before the release of the number
#include "common.h"

static const int D = 3, N = 6, ROUNDS = 4;

struct Bakery {
  unsigned choosing[D], number[D];
};

DEV void fence_sc() {
  if (BUG == 2)
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  else
    asm volatile("fence.sc.sys;" ::: "memory");
}

static __global__ void customer(Bakery* b, unsigned* data, int me) {
  for (int r = 0; r < ROUNDS; ++r) {
    st_relaxed(&b->choosing[me], 1);
    fence_sc();
    unsigned mine = 0;
    for (int i = 0; i < D; ++i) mine = max(mine, ld_relaxed(&b->number[i]));
    ++mine;
    st_relaxed(&b->number[me], mine);
    if (BUG != 1) fence_sc();
    st_release(&b->choosing[me], 0);
    if (BUG != 1) fence_sc();
    for (int i = 0; i < D; ++i) {
      if (i == me) continue;
      while (BUG != 3 && ld_acquire(&b->choosing[i]) != 0) {
      }
      for (;;) {
        const unsigned his = ld_acquire(&b->number[i]);
        if (his == 0 || his > mine || (his == mine && i > me)) break;
      }
    }
    for (int i = 0; i < N; ++i) data[i] += i + 1;
    if (BUG == 5) fence_sc();
    if (BUG == 4)
      st_relaxed(&b->number[me], 0);
    else
      st_release(&b->number[me], 0);
  }
}

int main() {
  peers(D);
  Bakery* b = alloc<Bakery>(1, 1);
  unsigned* data = alloc<unsigned>(2, N);
  sync_all(D);
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    customer<<<1, 1>>>(b, data, d);
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(2, data, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != D * ROUNDS * (i + 1);
  return finish(wrong, D);
}
