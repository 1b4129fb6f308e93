// A reader-writer lock by announcement: each reader raises a flag of its own and looks at the writer's, the writer
// raises his and waits until all readers' are down.
// EXPECT 1 race: readers have no fence.sc between their flag and their look
// EXPECT 2 race: the writer has no fence.sc between his flag and his looks
// EXPECT 3 race: fence.acq_rel everywhere
// EXPECT 4 race: a reader who finds the writer's flag keeps his own up and goes on
// EXPECT 5 race: the writer takes his flag down by a relaxed store
// EXPECT 6 none: flags are raised by atomics, fences stay
#include "common.h"

static const int D = 3, N = 4, WRITES = 4, READS = 6;

struct Lock {
  unsigned writing, reading[D];
};

DEV void fence_sc(bool reader) {
  if (BUG == 3)
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  else if (!(BUG == 1 && reader) && !(BUG == 2 && !reader))
    asm volatile("fence.sc.sys;" ::: "memory");
}
DEV void raise(unsigned* p) {
  if (BUG == 6)
    atomicExch_system(p, 1u);
  else
    st_relaxed(p, 1);
}

static __global__ void writer(Lock* l, unsigned* data) {
  for (unsigned w = 1; w <= WRITES; ++w) {
    raise(&l->writing);
    fence_sc(false);
    for (int d = 1; d < D; ++d)
      while (ld_acquire(&l->reading[d]) != 0) {
      }
    for (int i = 0; i < N; ++i) data[i] = w * 10;
    if (BUG == 5)
      st_relaxed(&l->writing, 0);
    else
      st_release(&l->writing, 0);
  }
}

static __global__ void reader(Lock* l, const unsigned* data, unsigned* bad, int me) {
  for (unsigned r = 0; r < READS; ++r) {
    for (;;) {
      raise(&l->reading[me]);
      fence_sc(true);
      if (ld_acquire(&l->writing) == 0 || BUG == 4) break;
      st_release(&l->reading[me], 0);
      while (ld_relaxed(&l->writing) != 0) {
      }
    }
    for (int i = 1; i < N; ++i) *bad += data[i] != data[0];
    st_release(&l->reading[me], 0);
  }
}

int main() {
  peers(D);
  Lock* l = alloc<Lock>(0, 1);
  unsigned *data = alloc<unsigned>(0, N), *bad[D];
  for (int d = 0; d < D; ++d) bad[d] = alloc<unsigned>(d, 1);
  sync_all(D);
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    if (d == 0)
      writer<<<1, 1>>>(l, data);
    else
      reader<<<1, 1>>>(l, data, bad[d], d);
  }
  sync_all(D);
  long wrong = 0;
  for (int d = 1; d < D; ++d) wrong += get(d, bad[d], 1)[0];
  return finish(wrong, D);
}
