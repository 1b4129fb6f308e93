// Pull with ready flags: every device keeps its data and its ready flag at home; peers poll the flag, read the data
// over the link and count themselves done, and the owner overwrites once all peers are done.
// EXPECT 1 scope: ready is released at gpu scope because the flag is local, but its pollers are not
// EXPECT 2 race: done is counted by a relaxed reduction without a fence; the reads are not released
// EXPECT 3 race: lane 0 of each warp polls, but no warp barrier orders the other lanes after it
// EXPECT 4 none: lane 0 of each warp polls, then the warp barrier orders the other lanes
// EXPECT 5 race: data is loaded before ready has been seen, and only then kept
// EXPECT 6 race: the owner waits for one peer too few
#include "common.h"

constexpr int kRanks = 3, kThreads = 64, kEpochs = 3;

struct Rank {
  unsigned* data;   // [kThreads]
  unsigned* ready;  // epochs
  unsigned* done;   // counts peers that have read
  unsigned* out;    // [kEpochs][kThreads]
};
struct Node {
  Rank r[kRanks];
};

DEV void count_done(unsigned* done) {
  if (BUG == 2)
    asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(done) : "memory");
  else
    red_release(done, 1);
}

__global__ void run(Node node, int me) {
  const Rank own = node.r[me];
  const int t = threadIdx.x;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    if (t == 0) wait_ge(own.done, (e - 1) * (kRanks - 1) - (BUG == 6 && e > 1));
    __syncthreads();
    own.data[t] = e * 1000 + me * 100 + t;
    __syncthreads();
    if (t == 0) {
      if (BUG == 1)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(own.ready), "r"(e) : "memory");
      else
        st_release(own.ready, e);
    }
    unsigned sum = e * 1000 + me * 100 + t;
    for (int k = 1; k < kRanks; ++k) {
      const Rank peer = node.r[(me + k) % kRanks];
      unsigned v = BUG == 5 ? peer.data[t] : 0;
      if (BUG == 3 || BUG == 4) {
        if (t % 32 == 0) wait_ge(peer.ready, e);
        if (BUG == 4) __syncwarp();
      } else {
        if (t == 0) wait_ge(peer.ready, e);
        __syncthreads();
      }
      if (BUG != 5 || v / 1000 != e) v = peer.data[t];
      sum += v;
      __syncthreads();
      if (t == 0) count_done(peer.done);
    }
    own.out[(e - 1) * kThreads + t] = sum;
  }
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d)
    node.r[d] = {alloc<unsigned>(d, kThreads), alloc<unsigned>(d, 1), alloc<unsigned>(d, 1),
                 alloc<unsigned>(d, kEpochs * kThreads)};
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    run<<<1, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, node.r[d].out, kEpochs * kThreads);
    for (int j = 0; j < kEpochs * kThreads; ++j)
      wrong += out[j] != unsigned(kRanks * ((j / kThreads + 1) * 1000 + j % kThreads) + 300);
  }
  return finish(wrong, kRanks);
}
