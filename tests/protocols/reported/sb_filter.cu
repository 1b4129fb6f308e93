// Peterson's filter lock between three devices: at each of two levels announce the level, become its victim, wait while
// somebody is at this level or above and oneself is still the victim.
// EXPECT 1 race: no fence.sc between the level and the victim
// MISSED 1: needs a certain order of two fences and one old value
// EXPECT 2 race: no fence.sc between the victim and the looks
// MISSED 2: needs a certain order of two fences and one old value
// EXPECT 3 race: fence.acq_rel everywhere
// EXPECT 4 race: one level instead of two lets two in
// EXPECT 5 race: the level is taken back by a relaxed store
#include "common.h"

static const int D = 3, N = 4, ROUNDS = 4;

struct Filter {
  unsigned level[D], victim[D];
};

DEV void fence_sc() {
  if (BUG == 3)
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  else
    asm volatile("fence.sc.sys;" ::: "memory");
}

static __global__ void work(Filter* f, unsigned* data, unsigned me) {
  for (int r = 0; r < ROUNDS; ++r) {
    for (unsigned at = 1; at < (BUG == 4 ? D - 1 : D); ++at) {
      st_relaxed(&f->level[me], at);
      if (BUG != 1) fence_sc();
      st_release(&f->victim[at], me);
      if (BUG != 2) fence_sc();
      for (unsigned k = 0; k < D; ++k) {
        if (k == me) continue;
        while (ld_acquire(&f->level[k]) >= at && ld_acquire(&f->victim[at]) == me) {
        }
      }
    }
    for (int i = 0; i < N; ++i) data[i] += i + 1;
    if (BUG == 5)
      st_relaxed(&f->level[me], 0);
    else
      st_release(&f->level[me], 0);
  }
}

int main() {
  peers(D);
  Filter* f = alloc<Filter>(0, 1);
  unsigned* data = alloc<unsigned>(1, N);
  sync_all(D);
  for (unsigned d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, 1>>>(f, data, d);
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(1, data, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != D * ROUNDS * (i + 1);
  return finish(wrong, D);
}
