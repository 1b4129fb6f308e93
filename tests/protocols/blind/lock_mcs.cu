// An MCS queue lock over 4 devices: the tail is on device 0, every contender spins on its own node on its own device.
// In the first round contenders come one after the other (a relaxed hint), so the lock also passes through the tail.
// EXPECT 1 race: the exchange of the tail is relaxed, so taking a free lock does not acquire
// EXPECT 2 race: the lock is handed to the successor by a relaxed store
// EXPECT 3 race: a lock without successor is freed by a relaxed compare-and-swap
// EXPECT 4 race: a node is polled by relaxed loads without a fence
// EXPECT 5 scope: the lock is handed over by a store of device scope, the successor is on another device
// EXPECT 6 none: a node is polled by relaxed loads, then a system-wide acquire fence
#include <cuda/atomic>

#include "common.h"

static const int D = 4, ROUNDS = 4;
static const cuda::memory_order RELAXED = cuda::memory_order_relaxed,
                                ACQUIRE = cuda::memory_order_acquire,
                                RELEASE = cuda::memory_order_release,
                                ACQ_REL = cuda::memory_order_acq_rel;

struct Node {
  unsigned locked, next;
};
struct Nodes {
  Node* of[D];
};
using Ref = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

DEV void lock(unsigned* tail, Nodes nodes, unsigned me) {
  Node* mine = nodes.of[me];
  Ref(mine->locked).store(1, RELAXED);
  Ref(mine->next).store(0, RELAXED);
  unsigned before = Ref(*tail).exchange(me + 1, BUG == 1 ? RELEASE : ACQ_REL);
  if (before != 0) {
    Ref(nodes.of[before - 1]->next).store(me + 1, RELEASE);
    while (Ref(mine->locked).load(BUG == 4 || BUG == 6 ? RELAXED : ACQUIRE) != 0) {
    }
    if (BUG == 6) cuda::atomic_thread_fence(ACQUIRE, cuda::thread_scope_system);
  }
}

DEV void unlock(unsigned* tail, Nodes nodes, unsigned me) {
  unsigned next = Ref(nodes.of[me]->next).load(ACQUIRE);
  if (next == 0) {
    unsigned expected = me + 1;
    if (Ref(*tail).compare_exchange_strong(expected, 0, BUG == 3 ? RELAXED : RELEASE, RELAXED))
      return;
    while ((next = Ref(nodes.of[me]->next).load(ACQUIRE)) == 0) {
    }
  }
#if BUG == 5
  cuda::atomic_ref<unsigned, cuda::thread_scope_device>(nodes.of[next - 1]->locked)
      .store(0, RELEASE);
#else
  Ref(nodes.of[next - 1]->locked).store(0, BUG == 2 ? RELAXED : RELEASE);
#endif
}

static __global__ void work(unsigned* tail, Nodes nodes, unsigned me, unsigned* hint,
                            unsigned* data) {
  while (ld_relaxed(hint) < me) {
  }
  for (int r = 0; r < ROUNDS; ++r) {
    lock(tail, nodes, me);
    for (int i = 0; i < 8; ++i) data[i] = data[i] * 3 + 1;
    unlock(tail, nodes, me);
    if (r == 0) {
      st_relaxed(hint, me + 1);
      while (ld_relaxed(hint) < D) {
      }
    }
  }
}

int main() {
  peers(D);
  unsigned *tail = alloc<unsigned>(0, 1), *hint = alloc<unsigned>(0, 1),
           *data = alloc<unsigned>(1, 8);
  Nodes nodes;
  for (int d = 0; d < D; ++d) nodes.of[d] = alloc<Node>(d, 1);
  sync_all(D);
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, 1>>>(tail, nodes, d, hint, data);
  }
  sync_all(D);
  unsigned expected = 0;
  for (int r = 0; r < D * ROUNDS; ++r) expected = expected * 3 + 1;
  long wrong = 0;
  for (unsigned x : get(1, data, 8)) wrong += x != expected;
  return finish(wrong, D);
}
