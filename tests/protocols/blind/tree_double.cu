// Double-tree all-reduce: block t reduces half t of the data on tree t (the second tree mirrors the first). The halves
// are exchanged between the two blocks of a device, through a counter, to form the next epoch's input.
// EXPECT 1 race: the counter of finished halves is a relaxed atomicAdd; the other block's half is not released
// EXPECT 2 scope: red.release.cta between blocks
// EXPECT 3 race: both trees share one flag downwards; one tree's parent lets the other tree's block go on
// EXPECT 4 none: fences around a relaxed atomicAdd and a volatile poll (volatile is relaxed of system scope)
// EXPECT 5 race: a single buffer of results; the other block still reads it when the next epoch overwrites it
#include "common.h"

constexpr int kRanks = 4, kThreads = 32, kEpochs = 4;

struct Rank {
  unsigned* up;         // [2 trees][2 children][kThreads]
  unsigned* up_flag;    // [2 trees][2 children]
  unsigned* down;       // [2 trees][kThreads]
  unsigned* down_flag;  // [2 trees]
  unsigned* result;     // [2 epochs][2 halves][kThreads]
  unsigned* halves;     // counts finished halves, blocks of this device only
  unsigned* out;        // [2 halves][kThreads]
};
struct Tree {
  Rank r[kRanks];
};

DEV void halves_done(unsigned* n, unsigned target) {
  unsigned v;
  if (BUG == 1) {
    atomicAdd(n, 1u);
  } else if (BUG == 2) {
    asm volatile("red.release.cta.global.add.u32 [%0], 1;" ::"l"(n) : "memory");
  } else if (BUG == 4) {
    __threadfence();
    atomicAdd(n, 1u);
    while (*static_cast<volatile unsigned*>(n) < target) {
    }
    __threadfence();
    return;
  } else {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(n) : "memory");
  }
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(n) : "memory");
  } while (v < target);
}

__global__ void all_reduce(Tree tree, int me) {
  const Rank own = tree.r[me];
  const int t = threadIdx.x, k = blockIdx.x;  // k: the tree and the half
  const int flag = BUG == 3 ? 0 : k;
  const int v_me =
      k ? kRanks - 1 - me : me;  // tree 0: 1 and 2 below 0, 3 below 1; tree 1: the mirror image
  unsigned x = me * 10 + k * 100 + t;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    for (int c = 0; c < 2; ++c) {
      if (2 * v_me + 1 + c >= kRanks) continue;
      if (t == 0) wait_ge(&own.up_flag[2 * k + c], e);
      __syncthreads();
      x += own.up[(2 * k + c) * kThreads + t];
    }
    if (v_me > 0) {
      const int v_up = (v_me - 1) / 2, side = 2 * k + (v_me + 1) % 2;
      const Rank parent = tree.r[k ? kRanks - 1 - v_up : v_up];
      parent.up[side * kThreads + t] = x;
      __syncthreads();
      if (t == 0) {
        st_release(&parent.up_flag[side], e);
        wait_ge(&own.down_flag[flag], e);
      }
      __syncthreads();
      x = own.down[k * kThreads + t];
    }
    for (int v = 2 * v_me + 1; v < 2 * v_me + 3 && v < kRanks; ++v) {
      const Rank child = tree.r[k ? kRanks - 1 - v : v];
      child.down[k * kThreads + t] = x;
      __syncthreads();
      if (t == 0) st_release(&child.down_flag[flag], e);
    }
    unsigned* result = own.result + (BUG == 5 ? 0 : e % 2) * 2 * kThreads;
    result[k * kThreads + t] = x;
    __syncthreads();
    if (t == 0) halves_done(own.halves, 2 * e);
    __syncthreads();
    x = result[(1 - k) * kThreads + t] + me;
  }
  own.out[k * kThreads + t] = x;
}

int main() {
  peers(kRanks);
  Tree tree;
  for (int d = 0; d < kRanks; ++d)
    tree.r[d] = {alloc<unsigned>(d, 4 * kThreads), alloc<unsigned>(d, 4),
                 alloc<unsigned>(d, 2 * kThreads), alloc<unsigned>(d, 2),
                 alloc<unsigned>(d, 4 * kThreads), alloc<unsigned>(d, 1),
                 alloc<unsigned>(d, 2 * kThreads)};
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    all_reduce<<<2, kThreads>>>(tree, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    unsigned sum[2] = {60u + 4 * t,
                       460u + 4 * t};  // sums over the ranks, then what the ranks make of them
    for (int e = 1; e < kEpochs; ++e) {
      std::swap(sum[0], sum[1]);
      for (unsigned& s : sum) s = s * kRanks + 6;
    }
    for (int d = 0; d < kRanks; ++d) {
      const auto out = get(d, tree.r[d].out, 2 * kThreads);
      for (int k = 0; k < 2; ++k) wrong += out[k * kThreads + t] != sum[1 - k] + d;
    }
  }
  return finish(wrong, kRanks);
}
