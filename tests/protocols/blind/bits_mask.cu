// Arrival bits in one word: each of three producers sets its bit in the consumer's mask after writing its part; the
// consumer waits for all bits, clears the mask and acknowledges.
// EXPECT 1 race: the bit is set by a relaxed red.or without a fence
// EXPECT 2 scope: atomicOr is of device scope, the producers are different devices
// EXPECT 3 race|hang: the bit is set by load and release store: bits get lost, and a store hides another's release
// EXPECT 4 none: the consumer clears the mask by a weak store, before the acknowledgement that orders it
// EXPECT 5 race: the consumer goes on when any bit is set
// EXPECT 6 race|hang: the consumer clears the mask after the acknowledgement, by a weak store
#include "common.h"

constexpr int kRanks = 4, kThreads = 32, kEpochs = 4;
constexpr unsigned kAll = (1u << kRanks) - 2;

struct Node {
  unsigned* part;  // [kRanks][kThreads]
  unsigned* mask;
  unsigned* ack[kRanks];
  unsigned* out;  // [kEpochs][kThreads]
};

DEV void set_bit(unsigned* mask, unsigned bit) {
  if (BUG == 1) {
    asm volatile("red.relaxed.sys.global.or.b32 [%0], %1;" ::"l"(mask), "r"(bit) : "memory");
  } else if (BUG == 2) {
    __threadfence_system();
    atomicOr(mask, bit);
  } else if (BUG == 3) {
    st_release(mask, ld_relaxed(mask) | bit);
  } else {
    asm volatile("red.release.sys.global.or.b32 [%0], %1;" ::"l"(mask), "r"(bit) : "memory");
  }
}

__global__ void produce(Node node, int me) {
  const int t = threadIdx.x;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    if (t == 0) wait_ge(node.ack[me], e - 1);
    __syncthreads();
    node.part[me * kThreads + t] = e * 1000 + me * 100 + t;
    __syncthreads();
    if (t == 0) set_bit(node.mask, 1u << me);
  }
}

__global__ void consume(Node node) {
  const int t = threadIdx.x;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    if (t == 0) {
      unsigned m;
      do m = ld_acquire(node.mask);
      while (BUG == 5 ? m == 0 : m != kAll);
    }
    __syncthreads();
    unsigned sum = 0;
    for (int p = 1; p < kRanks; ++p) sum += node.part[p * kThreads + t];
    node.out[(e - 1) * kThreads + t] = sum;
    if (t == 0 && BUG == 4) *node.mask = 0;
    if (t == 0 && BUG != 4 && BUG != 6) st_relaxed(node.mask, 0);
    __syncthreads();
    if (t > 0 && t < kRanks) st_release(node.ack[t], e);
    if (t == 0 && BUG == 6) *node.mask = 0;
  }
}

int main() {
  peers(kRanks);
  Node node;
  node.part = alloc<unsigned>(0, kRanks * kThreads);
  node.mask = alloc<unsigned>(0, 1);
  node.out = alloc<unsigned>(0, kEpochs * kThreads);
  for (int d = 0; d < kRanks; ++d) node.ack[d] = alloc<unsigned>(d, 1);
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    if (d == 0)
      consume<<<1, kThreads>>>(node);
    else
      produce<<<1, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  const auto out = get(0, node.out, kEpochs * kThreads);
  for (int j = 0; j < kEpochs * kThreads; ++j)
    wrong += out[j] != unsigned(3 * ((j / kThreads + 1) * 1000 + j % kThreads) + 600);
  return finish(wrong, kRanks);
}
