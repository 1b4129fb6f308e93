// All-to-all by push: block p of device d writes into a slot of device p, sets a flag there and waits for device p's
// flag. Epochs alternate between two slots; receiving epoch e - 1 proves that epoch e - 2 has been read.
// EXPECT 1 race: a single slot; the peer may still read epoch e - 1 when epoch e overwrites it
// EXPECT 2 race: no barrier before the flag; thread 0 releases its own store only
// EXPECT 3 race: waits for the next peer's flag instead of the flag of the peer whose slot it reads
// EXPECT 4 none: a relaxed poll, then an acquire load of the same flag
// EXPECT 5 hang: waits for the peer's flag before setting its own
#include "common.h"

constexpr int kRanks = 4, kThreads = 64, kEpochs = 4;
constexpr int kSlots = BUG == 1 ? 1 : 2;

struct Rank {
  unsigned* slot;  // [kSlots][kRanks][kThreads]
  unsigned* flag;  // [kRanks]
  unsigned* out;   // [kEpochs][kRanks][kThreads]
};
struct Node {
  Rank r[kRanks];
};

DEV void wait_flag(const unsigned* flag, unsigned e) {
  if (BUG == 4) {
    while (ld_relaxed(flag) < e) {
    }
    (void)ld_acquire(flag);
  } else {
    wait_ge(flag, e);
  }
}

__global__ void all_to_all(Node node, int me) {
  const int t = threadIdx.x, p = blockIdx.x;
  const Rank own = node.r[me], peer = node.r[p];
  const int awaited = BUG == 3 ? (p + 1) % kRanks : p;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    const int base = e % kSlots * kRanks * kThreads;
    peer.slot[base + me * kThreads + t] = e * 10000 + me * 1000 + p * 100 + t;
    if (BUG != 2) __syncthreads();
    if (t == 0) {
      if (BUG == 5) wait_flag(&own.flag[awaited], e);
      st_release(&peer.flag[me], e);
      if (BUG != 5) wait_flag(&own.flag[awaited], e);
    }
    __syncthreads();
    own.out[((e - 1) * kRanks + p) * kThreads + t] = own.slot[base + p * kThreads + t];
  }
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d)
    node.r[d] = {alloc<unsigned>(d, kSlots * kRanks * kThreads), alloc<unsigned>(d, kRanks),
                 alloc<unsigned>(d, kEpochs * kRanks * kThreads)};
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    all_to_all<<<kRanks, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, node.r[d].out, kEpochs * kRanks * kThreads);
    for (int j = 0; j < kEpochs * kRanks * kThreads; ++j) {
      const int t = j % kThreads, p = j / kThreads % kRanks, e = j / kThreads / kRanks + 1;
      wrong += out[j] != unsigned(e * 10000 + p * 1000 + d * 100 + t);
    }
  }
  return finish(wrong, kRanks);
}
