// MoE dispatch and combine: every thread holds a token, reserves a slot at its expert's device with an atomic and
// writes the token there; blocks count in at each expert; the expert answers into the tokens' home and counts out.
// EXPECT 1 scope: slots are reserved by atomicAdd of device scope, from several devices
// EXPECT 2 race: the arrival is a relaxed reduction without a fence
// EXPECT 3 race: no block barrier before the arrival; thread 0 releases its own token only
// EXPECT 4 none: the expert reads the slot count weakly; all reservations happen before the arrivals it acquired
// EXPECT 5 race: the expert resets the slot count after it has counted out; new reservations may be there already
// EXPECT 6 race: the home waits for the answers of one expert only
#include "common.h"

constexpr int kRanks = 3, kBlocks = 2, kThreads = 32, kEpochs = 3, kTokens = kBlocks * kThreads;
constexpr int kRoom = kRanks * kTokens;

struct Rank {
  unsigned* used;    // slots reserved
  unsigned* token;   // [kRoom]
  unsigned* home;    // [kRoom] where the answer goes: device * kTokens + index
  unsigned* in;      // blocks that have dispatched to this expert
  unsigned* answer;  // [kTokens]
  unsigned* back;    // experts that have answered
  unsigned* out;     // [kEpochs][kTokens]
};
struct Node {
  Rank r[kRanks];
};

static __host__ __device__ int expert_of(int d, int i, int e) {
  return (d * 5 + i * 7 + e + i / 5) % kRanks;
}

DEV void arrive(unsigned* p) {
  if (BUG == 2)
    asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(p) : "memory");
  else
    red_release(p, 1);
}

// Blocks 0 and 1 are home to tokens, block 2 is the expert.
__global__ void run(Node node, int me) {
  const Rank own = node.r[me];
  const int t = threadIdx.x, i = blockIdx.x * kThreads + t;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    if (blockIdx.x < kBlocks) {
      const Rank to = node.r[expert_of(me, i, e)];
      const unsigned slot = BUG == 1 ? atomicAdd(to.used, 1u) : atomicAdd_system(to.used, 1u);
      to.token[slot] = e * 1000 + i;
      to.home[slot] = me * kTokens + i;
      if (BUG != 3) __syncthreads();
      if (t < kRanks) arrive(node.r[t].in);
      if (t == 0) wait_ge(own.back, BUG == 6 ? (e - 1) * kRanks + 1 : e * kRanks);
      __syncthreads();
      own.out[(e - 1) * kTokens + i] = own.answer[i];
      __syncthreads();
    } else {
      if (t == 0) wait_ge(own.in, e * kRanks * kBlocks);
      __syncthreads();
      const unsigned n = BUG == 4 ? *own.used : ld_relaxed(own.used);
      for (unsigned s = t; s < n; s += kThreads) {
        const unsigned h = own.home[s];
        node.r[h / kTokens].answer[h % kTokens] = own.token[s] * 10 + me;
      }
      __syncthreads();
      if (BUG != 5 && t == 0) st_relaxed(own.used, 0);
      __syncthreads();
      if (t < kRanks) red_release(node.r[t].back, 1);
      if (BUG == 5 && t == 0) *own.used = 0;
    }
  }
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d)
    node.r[d] = {alloc<unsigned>(d, 1),
                 alloc<unsigned>(d, kRoom),
                 alloc<unsigned>(d, kRoom),
                 alloc<unsigned>(d, 1),
                 alloc<unsigned>(d, kTokens),
                 alloc<unsigned>(d, 1),
                 alloc<unsigned>(d, kEpochs * kTokens)};
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    run<<<kBlocks + 1, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, node.r[d].out, kEpochs * kTokens);
    for (int j = 0; j < kEpochs * kTokens; ++j) {
      const int e = j / kTokens + 1, i = j % kTokens;
      wrong += out[j] != unsigned((e * 1000 + i) * 10 + expert_of(d, i, e));
    }
  }
  return finish(wrong, kRanks);
}
