// A bounded queue after Vyukov on device 0: producers on devices 1 to 3 draw positions and publish slots by a sequence
// number, one consumer on device 0 takes them in order and frees the slots for the next lap.
// EXPECT 1 race: the slot is published by a relaxed store without a fence
// EXPECT 2 race: the consumer polls the sequence number by relaxed loads without a fence
// EXPECT 3 race: the consumer frees the slot by a relaxed store, its reads are not ordered before the next lap's writes
// EXPECT 4 scope: positions are drawn by atomicAdd, which is atomic only within a device
// EXPECT 5 race: producers wait for a free slot by relaxed loads, the consumer's reads are not acquired
// EXPECT 6 none: positions are drawn with a redundant release, slots are published by fence.acq_rel.sys and st.relaxed
#include "common.h"

static const int D = 4, SLOTS = 4, WORDS = 4, EACH = 8, TOTAL = (D - 1) * EACH;

struct Slot {
  unsigned seq, data[WORDS];
};
struct Queue {
  unsigned tail;
  Slot slot[SLOTS];
};

static __global__ void produce(Queue* q, unsigned rank) {
  for (unsigned n = 0; n < EACH; ++n) {
    if (BUG == 6) __threadfence_system();
#if BUG == 4
    unsigned at = atomicAdd(&q->tail, 1);
#else
    unsigned at = atomicAdd_system(&q->tail, 1);
#endif
    Slot* s = &q->slot[at % SLOTS];
#if BUG == 5
    while (ld_relaxed(&s->seq) != at / SLOTS * 2) {
    }
#else
    while (ld_acquire(&s->seq) != at / SLOTS * 2) {
    }
#endif
    for (int w = 0; w < WORDS; ++w) s->data[w] = rank * 100 + n + w;
#if BUG == 1
    st_relaxed(&s->seq, at / SLOTS * 2 + 1);
#elif BUG == 6
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    st_relaxed(&s->seq, at / SLOTS * 2 + 1);
#else
    st_release(&s->seq, at / SLOTS * 2 + 1);
#endif
  }
}

static __global__ void consume(Queue* q, unsigned* sums) {
  for (unsigned at = 0; at < TOTAL; ++at) {
    Slot* s = &q->slot[at % SLOTS];
#if BUG == 2
    while (ld_relaxed(&s->seq) != at / SLOTS * 2 + 1) {
    }
#else
    while (ld_acquire(&s->seq) != at / SLOTS * 2 + 1) {
    }
#endif
    for (int w = 0; w < WORDS; ++w) sums[w] += s->data[w];
#if BUG == 3
    st_relaxed(&s->seq, at / SLOTS * 2 + 2);
#else
    st_release(&s->seq, at / SLOTS * 2 + 2);
#endif
  }
}

int main() {
  peers(D);
  Queue* q = alloc<Queue>(0, 1);
  unsigned* sums = alloc<unsigned>(0, WORDS);
  sync_all(D);
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    if (d == 0)
      consume<<<1, 1>>>(q, sums);
    else
      produce<<<1, 1>>>(q, d);
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(0, sums, WORDS);
  for (unsigned w = 0; w < WORDS; ++w)
    wrong += v[w] != EACH * 100 * (1 + 2 + 3) + 3 * (EACH * (EACH - 1) / 2 + EACH * w);
  return finish(wrong, D);
}
