// A Treiber stack shared by 3 devices: nodes of an arena on device 0 are popped, their payload is updated with ordinary
// accesses, and they are pushed again; the head carries a tag that changes with every push and pop.
// EXPECT 1 value|race: the tag never changes (ABA), a pop may install the next of a node popped and pushed since
// EXPECT 2 race: push publishes by a relaxed compare-and-swap, the payload is not released
// EXPECT 3 race: pop reads the head relaxed and swaps relaxed, the payload is not acquired
// EXPECT 4 scope: compare-and-swap of device scope on a head that several devices change
// EXPECT 5 none: pop swaps relaxed after an acquire load; as a read-modify-write it carries earlier releases on
// EXPECT 6 race: next is an ordinary access, though a node may be pushed again while a slow pop reads its next
#include <cuda/atomic>

#include "common.h"

static const int D = 3, BLOCKS = 2, NODES = 8, ROUNDS = 6;
static const cuda::memory_order RELAXED = cuda::memory_order_relaxed,
                                ACQUIRE = cuda::memory_order_acquire,
                                RELEASE = cuda::memory_order_release,
                                ACQ_REL = cuda::memory_order_acq_rel;
using Word = unsigned long long;
using Next = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;
using Load = cuda::atomic_ref<Word, cuda::thread_scope_system>;
#if BUG == 4
using Head = cuda::atomic_ref<Word, cuda::thread_scope_device>;
#else
using Head = cuda::atomic_ref<Word, cuda::thread_scope_system>;
#endif

struct Stack {
  Word head;  // tag in the high half, number of the top node (from 1, 0 is none) in the low half
  unsigned next[NODES + 1], payload[NODES + 1];
};

DEV Word successor(Word old, unsigned top) {
  const Word tag = BUG == 1 ? 0 : (old >> 32) + 1;
  return tag << 32 | top;
}

DEV unsigned pop(Stack* s) {
  Word old = Load(s->head).load(BUG == 3 ? RELAXED : ACQUIRE);
  for (;;) {
    unsigned top = static_cast<unsigned>(old);
    if (top == 0) return 0;
    unsigned next = BUG == 6 ? s->next[top] : Next(s->next[top]).load(RELAXED);
    const cuda::memory_order won = BUG == 3 || BUG == 5 ? RELAXED : ACQ_REL;
    if (Head(s->head).compare_exchange_strong(old, successor(old, next), won,
                                              BUG == 3 ? RELAXED : ACQUIRE))
      return top;
  }
}

DEV void push(Stack* s, unsigned node) {
  Word old = Load(s->head).load(RELAXED);
  do {
    if (BUG == 6)
      s->next[node] = static_cast<unsigned>(old);
    else
      Next(s->next[node]).store(static_cast<unsigned>(old), RELAXED);
  } while (!Head(s->head).compare_exchange_strong(old, successor(old, node),
                                                  BUG == 2 ? RELAXED : RELEASE, RELAXED));
}

static __global__ void work(Stack* s, unsigned* updates) {
  for (int r = 0; r < ROUNDS; ++r) {
    unsigned node = pop(s);
    if (node == 0) continue;
    s->payload[node] += 3;
    atomicAdd_system(updates, 1);
    push(s, node);
  }
}

int main() {
  peers(D);
  Stack* s = alloc<Stack>(0, 1);
  unsigned* updates = alloc<unsigned>(1, 1);
  Stack h = {};
  h.head = NODES;
  for (unsigned n = 1; n <= NODES; ++n) h.next[n] = n - 1;
  put(0, s, std::vector<Stack>{h});
  sync_all(D);
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    work<<<BLOCKS, 1>>>(s, updates);
  }
  sync_all(D);
  h = get(0, s, 1)[0];
  unsigned sum = 0, length = 0;
  for (unsigned n = static_cast<unsigned>(h.head); n != 0 && length < 100; n = h.next[n], ++length)
    sum += h.payload[n];
  return finish((sum != 3 * get(1, updates, 1)[0]) + (length != NODES), D);
}
