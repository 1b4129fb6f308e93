// All-reduce on a binary tree of seven devices: sums go up through one slot per child, the total comes down.
// EXPECT 1 race: the flag upwards is a relaxed store without a fence
// EXPECT 2 scope: the child polls the flag in its own memory with ld.acquire.gpu, but another device stores it
// EXPECT 3 race: thread c polls child c relaxed, then a barrier, then a fence in thread 0 only; no acquire pattern
// EXPECT 4 none: thread c polls child c relaxed and fences itself before the barrier
// EXPECT 5 race: the flag downwards is set before the barrier; it releases the stores of thread 0 only
#include "common.h"

constexpr int kRanks = 7, kThreads = 64, kEpochs = 3;

struct Rank {
  unsigned* up;       // [2][kThreads], filled by the children
  unsigned* up_flag;  // [2]
  unsigned* down;     // [kThreads], filled by the parent
  unsigned* down_flag;
  unsigned* out;  // [kEpochs][kThreads]
};
struct Tree {
  Rank r[kRanks];
};

DEV void fence_sys() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

DEV void wait_children(const Rank& own, unsigned e) {
  const int t = threadIdx.x;
  if (BUG == 3 || BUG == 4) {
    if (t < 2) {
      while (ld_relaxed(&own.up_flag[t]) < e) {
      }
      if (BUG == 4) fence_sys();
    }
    __syncthreads();
    if (BUG == 3 && t == 0) fence_sys();
  } else {
    if (t < 2) wait_ge(&own.up_flag[t], e);
    __syncthreads();
  }
}

DEV void wait_parent(const Rank& own, unsigned e) {
  if (threadIdx.x == 0) {
    unsigned v;
    do {
      if (BUG == 2)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(v)
                     : "l"(own.down_flag)
                     : "memory");
      else
        v = ld_acquire(own.down_flag);
    } while (v < e);
  }
  __syncthreads();
}

__global__ void all_reduce(Tree tree, int me) {
  const Rank own = tree.r[me];
  const int t = threadIdx.x, child = 2 * me + 1, side = (me + 1) % 2;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    unsigned v = e * 1000 + me * 100 + t;
    if (child < kRanks) {
      wait_children(own, e);
      v += own.up[t] + own.up[kThreads + t];
    }
    if (me > 0) {
      const Rank parent = tree.r[(me - 1) / 2];
      parent.up[side * kThreads + t] = v;
      __syncthreads();
      if (t == 0)
        BUG == 1 ? st_relaxed(&parent.up_flag[side], e) : st_release(&parent.up_flag[side], e);
      wait_parent(own, e);
      v = own.down[t];
    }
    own.out[(e - 1) * kThreads + t] = v;
    if (child < kRanks) {
      for (int c = child; c < child + 2; ++c) tree.r[c].down[t] = v;
      if (BUG != 5) __syncthreads();
      if (t < 2) st_release(tree.r[child + t].down_flag, e);
      if (BUG == 5) __syncthreads();
    }
  }
}

int main() {
  peers(kRanks);
  Tree tree;
  for (int d = 0; d < kRanks; ++d)
    tree.r[d] = {alloc<unsigned>(d, 2 * kThreads), alloc<unsigned>(d, 2),
                 alloc<unsigned>(d, kThreads), alloc<unsigned>(d, 1),
                 alloc<unsigned>(d, kEpochs * kThreads)};
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    all_reduce<<<1, kThreads>>>(tree, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, tree.r[d].out, kEpochs * kThreads);
    for (int j = 0; j < kEpochs * kThreads; ++j)
      wrong += out[j] != unsigned(kRanks * ((j / kThreads + 1) * 1000 + j % kThreads) + 2100);
  }
  return finish(wrong, kRanks);
}
