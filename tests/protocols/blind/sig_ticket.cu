// A bounded queue of several producers: blocks of two devices draw tickets, wait until their slot is free, fill it and
// set the slot's sequence number; a consumer on a third device empties the slots in order.
// EXPECT 1 scope: the ticket is an atomicAdd of device scope, drawn by two devices
// EXPECT 2 race|hang: producers do not wait for the slot; it is overwritten while the consumer reads
// EXPECT 3 race: the consumer frees the slot by a relaxed store without a fence; its reads are not released
// EXPECT 4 race|value|hang: the ticket is a relaxed load and a relaxed store; two producers may fill one slot
// EXPECT 5 none: relaxed polls, a fence after them and fences before relaxed stores of the sequence number
#include "common.h"

constexpr int kRanks = 3, kBlocks = 2, kThreads = 32, kSlots = 3, kEach = 4;
constexpr int kItems = (kRanks - 1) * kBlocks * kEach;

struct Queue {
  unsigned* tail;
  unsigned* seq;   // [kSlots] ticket: free for it; ticket + 1: filled by it
  unsigned* slot;  // [kSlots][kThreads]
  unsigned* sum;   // [kThreads]
};

DEV void fence_sys() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

DEV unsigned draw(unsigned* tail) {
  if (BUG == 1) return atomicAdd(tail, 1u);
  if (BUG == 4) {
    const unsigned t = ld_relaxed(tail);
    st_relaxed(tail, t + 1);
    return t;
  }
  return atomicAdd_system(tail, 1u);
}

DEV void wait_seq(const unsigned* seq, unsigned v) {
  if (BUG == 5) {
    while (ld_relaxed(seq) != v) {
    }
    fence_sys();
  } else {
    while (ld_acquire(seq) != v) {
    }
  }
}

DEV void set_seq(unsigned* seq, unsigned v, bool consumer) {
  if (BUG == 5) fence_sys();
  if (BUG == 5 || (BUG == 3 && consumer))
    st_relaxed(seq, v);
  else
    st_release(seq, v);
}

__global__ void produce(Queue q, int me) {
  __shared__ unsigned ticket;
  for (int k = 0; k < kEach; ++k) {
    if (threadIdx.x == 0) {
      ticket = draw(q.tail);
      if (BUG != 2) wait_seq(q.seq + ticket % kSlots, ticket);
    }
    __syncthreads();
    q.slot[ticket % kSlots * kThreads + threadIdx.x] = me * 100 + blockIdx.x * 10 + k + threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) set_seq(q.seq + ticket % kSlots, ticket + 1, false);
  }
}

__global__ void consume(Queue q) {
  unsigned sum = 0;
  for (unsigned n = 0; n < kItems; ++n) {
    if (threadIdx.x == 0) wait_seq(q.seq + n % kSlots, n + 1);
    __syncthreads();
    sum += q.slot[n % kSlots * kThreads + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) set_seq(q.seq + n % kSlots, n + kSlots, true);
  }
  q.sum[threadIdx.x] = sum;
}

int main() {
  peers(kRanks);
  const Queue q = {alloc<unsigned>(0, 1), alloc<unsigned>(0, kSlots),
                   alloc<unsigned>(0, kSlots * kThreads), alloc<unsigned>(0, kThreads)};
  put(0, q.seq, std::vector<unsigned>{0, 1, 2});
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    if (d == 0)
      consume<<<1, kThreads>>>(q);
    else
      produce<<<kBlocks, kThreads>>>(q, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  const auto sum = get(0, q.sum, kThreads);
  for (int t = 0; t < kThreads; ++t)
    wrong += sum[t] != unsigned(kItems * t + 8 * 300 + 4 * 20 + 4 * 6);
  return finish(wrong, kRanks);
}
