// Peterson's algorithm between two devices: flag, turn, then look. By PTX it needs a fence.sc between flag and turn (or
// the turns' coherence order says nothing about the flags) and one between turn and the looks.
// EXPECT 1 race|value: no fence.sc between flag and turn: the other's flag may be missed though its turn came first
// MISSED 1: needs a certain order of two fences and one old value
// EXPECT 2 race|value: no fence.sc between turn and the looks (store buffering)
// MISSED 2: needs a certain order of two fences and one old value
// EXPECT 3 race|value: all fences are fence.acq_rel, which do not order stores before later loads
// EXPECT 4 scope|race|value: fences of gpu scope between different devices
// EXPECT 5 race: the flag is cleared by a relaxed store
// EXPECT 6 none: looks are relaxed, followed by fence.acq_rel.sys once both are done
#include "common.h"

static const int D = 2, N = 8, ROUNDS = 5;

struct Peterson {
  unsigned flag[2], turn;
};

DEV void fence_sc() {
#if BUG == 3
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#elif BUG == 4
  asm volatile("fence.sc.gpu;" ::: "memory");
#else
  asm volatile("fence.sc.sys;" ::: "memory");
#endif
}

DEV unsigned look(const unsigned* p) { return BUG == 6 ? ld_relaxed(p) : ld_acquire(p); }

static __global__ void work(Peterson* p, unsigned* data, unsigned me) {
  for (int r = 0; r < ROUNDS; ++r) {
    st_relaxed(&p->flag[me], 1);
    if (BUG != 1) fence_sc();
    st_release(&p->turn, 1 - me);
    if (BUG != 2) fence_sc();
    while (look(&p->flag[1 - me]) != 0 && look(&p->turn) != me) {
    }
    if (BUG == 6) asm volatile("fence.acq_rel.sys;" ::: "memory");
    for (int i = 0; i < N; ++i) data[i] += i + 1;
#if BUG == 5
    st_relaxed(&p->flag[me], 0);
#else
    st_release(&p->flag[me], 0);
#endif
  }
}

int main() {
  peers(D);
  Peterson* p = alloc<Peterson>(0, 1);
  unsigned* data = alloc<unsigned>(1, N);
  sync_all(D);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (unsigned d = 0; d < D; ++d) {
      CK(cudaSetDevice(d));
      work<<<1, 1>>>(p, data, d);
    }
    sync_all(D);
  }
  long wrong = 0;
  std::vector<unsigned> v = get(1, data, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != 2 * D * ROUNDS * (i + 1);
  return finish(wrong, D);
}
