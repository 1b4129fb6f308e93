// A consumer that goes to sleep: it says so, looks once more whether there is work, then waits to be woken. The
// producer stores work, then looks whether somebody sleeps. Either has to see the other.
// EXPECT 1 hang|value: the consumer has no fence.sc between its word and its last look
// EXPECT 2 hang|value: the producer has no fence.sc between the work and its look
// EXPECT 3 hang|value: fence.acq_rel on both sides
// EXPECT 4 hang|value: the consumer looks first and says so after it
// EXPECT 5 race: the work's number is published by a relaxed store
#include "common.h"

static const int D = 2, ITEMS = 8;

struct Box {
  unsigned published, asleep, woken;
  unsigned item[ITEMS];
};

DEV void fence_sc(bool producer) {
  if (BUG == 3)
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  else if (!(BUG == 1 && !producer) && !(BUG == 2 && producer))
    asm volatile("fence.sc.sys;" ::: "memory");
}

static __global__ void producer(Box* b, const unsigned* go) {
  unsigned wakes = 0;
  for (unsigned i = 0; i < ITEMS; ++i) {
    b->item[i] = 100 + i;
    if (BUG == 5)
      st_relaxed(&b->published, i + 1);
    else
      st_release(&b->published, i + 1);
    fence_sc(true);
    const unsigned asleep = ld_relaxed(&b->asleep);
    if (asleep > wakes) st_release(&b->woken, wakes = asleep);
    wait_ge(go, i + 1);
  }
}

static __global__ void consumer(Box* b, unsigned* go, unsigned* sum) {
  unsigned sleeps = 0;
  for (unsigned i = 0; i < ITEMS; ++i) {
    bool there = ld_acquire(&b->published) > i;
    if (!there && BUG == 4) {
      there = ld_acquire(&b->published) > i;
      if (!there) st_relaxed(&b->asleep, ++sleeps);
    } else if (!there) {
      st_relaxed(&b->asleep, ++sleeps);
      fence_sc(false);
      there = ld_acquire(&b->published) > i;
    }
    if (!there) wait_ge(&b->woken, sleeps);
    wait_ge(&b->published, i + 1);
    *sum += b->item[i];
    st_release(go, i + 1);
  }
}

int main() {
  peers(D);
  Box* b = alloc<Box>(1, 1);
  unsigned *go = alloc<unsigned>(0, 1), *sum = alloc<unsigned>(1, 1);
  sync_all(D);
  CK(cudaSetDevice(0));
  producer<<<1, 1>>>(b, go);
  CK(cudaSetDevice(1));
  consumer<<<1, 1>>>(b, go, sum);
  sync_all(D);
  long wrong = get(1, sum, 1)[0] != ITEMS * 100 + ITEMS * (ITEMS - 1) / 2;
  return finish(wrong, D);
}
