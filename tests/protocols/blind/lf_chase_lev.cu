// Work stealing after Chase and Lev: device 0 pushes tasks and takes them from the bottom, devices 1 and 2 steal from
// the top; take and steal need a fence.sc before they load the other end. The first task is left to a thief.
// EXPECT 1 value|race: take has no fence.sc between its store of bottom and its load of top: a task may run twice
// EXPECT 2 value|race: steal has no fence.sc between its loads of top and bottom
// EXPECT 3 value|race: fence.acq_rel instead of fence.sc in take and steal
// EXPECT 4 scope|value|race: fence.sc.gpu between devices is not morally strong
// EXPECT 5 race: push publishes bottom by a relaxed store, the task is not released to a thief
// EXPECT 6 none: thieves read bottom relaxed, followed by an acquire fence
#include <cuda/atomic>

#include "common.h"

static const int D = 3, TASKS = 24, BURST = 6;
static const cuda::memory_order RELAXED = cuda::memory_order_relaxed,
                                ACQUIRE = cuda::memory_order_acquire,
                                RELEASE = cuda::memory_order_release,
                                SEQ_CST = cuda::memory_order_seq_cst;
using Ref = cuda::atomic_ref<int, cuda::thread_scope_system>;

struct Deque {
  int top, bottom, closed;
  unsigned task[TASKS], runs[TASKS];
};

DEV void fence_sc(bool taking) {
#if BUG == 3
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#elif BUG == 4
  asm volatile("fence.sc.gpu;" ::: "memory");
#else
  if (!(BUG == 1 && taking) && !(BUG == 2 && !taking)) asm volatile("fence.sc.sys;" ::: "memory");
#endif
}

DEV bool take(Deque* q) {
  int at = Ref(q->bottom).load(RELAXED) - 1;
  Ref(q->bottom).store(at, RELEASE);
  fence_sc(true);
  int top = Ref(q->top).load(ACQUIRE), expected = top;
  bool won = top < at || (top == at &&
                          Ref(q->top).compare_exchange_strong(expected, top + 1, SEQ_CST, RELAXED));
  if (won) q->runs[q->task[at]] += 1;
  if (top >= at) Ref(q->bottom).store(at + 1, RELEASE);
  return top <= at;
}

static __global__ void owner(Deque* q) {
  for (unsigned id = 0; id < TASKS; ++id) {
    int b = Ref(q->bottom).load(RELAXED);
    q->task[b] = id;
    Ref(q->bottom).store(b + 1, BUG == 5 ? RELAXED : RELEASE);
    while (id == 0 && Ref(q->top).load(RELAXED) == 0) {
    }
    if (id % BURST == BURST - 1) {
      take(q);
      take(q);
    }
  }
  while (take(q)) {
  }
  Ref(q->closed).store(1, RELEASE);
}

static __global__ void thief(Deque* q) {
  while (Ref(q->closed).load(RELAXED) == 0) {
    int top = Ref(q->top).load(ACQUIRE);
    fence_sc(false);
    int bottom = Ref(q->bottom).load(BUG == 6 ? RELAXED : ACQUIRE);
    if (BUG == 6) cuda::atomic_thread_fence(ACQUIRE, cuda::thread_scope_system);
    if (top >= bottom || !Ref(q->top).compare_exchange_strong(top, top + 1, SEQ_CST, RELAXED))
      continue;
    q->runs[q->task[top]] += 1;
  }
}

int main() {
  peers(D);
  Deque* q = alloc<Deque>(0, 1);
  sync_all(D);
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    if (d == 0)
      owner<<<1, 1>>>(q);
    else
      thief<<<1, 1>>>(q);
  }
  sync_all(D);
  long wrong = 0;
  Deque h = get(0, q, 1)[0];
  for (int t = 0; t < TASKS; ++t) wrong += h.runs[t] != 1;
  return finish(wrong, D);
}
