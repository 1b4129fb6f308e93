// Hierarchical all-reduce: blocks count in at their device's leader block (device scope), leaders exchange partial sums
// with every peer (system scope), and a generation word lets the blocks of a device go on (device scope).
// EXPECT 1 scope: the leader's flags to other devices are released at gpu scope
// EXPECT 2 race: all threads fence before the barrier, then thread 0 counts in relaxed; that is no release pattern
// EXPECT 3 none: an additional fence of system scope in every thread
// EXPECT 4 race: the generation is polled by atomicAdd(p, 0), which is relaxed; nothing acquires the result
// EXPECT 5 scope: the count is released at cta scope, the leader is another block
#include "common.h"

constexpr int kRanks = 4, kBlocks = 3, kThreads = 32, kEpochs = 3;

struct Rank {
  unsigned* part;    // [kBlocks][kThreads]
  unsigned* count;   // blocks that have delivered their part
  unsigned* box;     // [2][kRanks][kThreads], filled by the peers' leaders
  unsigned* flag;    // [kRanks]
  unsigned* result;  // [kThreads]
  unsigned* gen;
  unsigned* out;  // [kBlocks][kThreads]
};
struct Node {
  Rank r[kRanks];
};

DEV unsigned ld_acquire_gpu(const unsigned* p) {
  unsigned v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEV void st_release_gpu(unsigned* p, unsigned v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
DEV void count_in(unsigned* n) {
  if (BUG == 2)
    atomicAdd(n, 1u);
  else if (BUG == 5)
    asm volatile("red.release.cta.global.add.u32 [%0], 1;" ::"l"(n) : "memory");
  else
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(n) : "memory");
}

__global__ void all_reduce(Node node, int me) {
  const Rank own = node.r[me];
  const int t = threadIdx.x, b = blockIdx.x;
  unsigned x = me * 100 + b * 10 + t;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    own.part[b * kThreads + t] = x;
    if (BUG == 2) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    if (BUG == 3) __threadfence_system();
    __syncthreads();
    if (t == 0) count_in(own.count);
    if (b == 0) {
      while (t == 0 && ld_acquire_gpu(own.count) < e * kBlocks) {
      }
      __syncthreads();
      unsigned v = 0;
      for (int c = 0; c < kBlocks; ++c) v += own.part[c * kThreads + t];
      for (int p = 0; p < kRanks; ++p) node.r[p].box[(e % 2 * kRanks + me) * kThreads + t] = v;
      __syncthreads();
      if (t < kRanks) {
        BUG == 1 ? st_release_gpu(&node.r[t].flag[me], e) : st_release(&node.r[t].flag[me], e);
        wait_ge(&own.flag[t], e);
      }
      __syncthreads();
      v = 0;
      for (int p = 0; p < kRanks; ++p) v += own.box[(e % 2 * kRanks + p) * kThreads + t];
      own.result[t] = v;
      __syncthreads();
      if (t == 0) st_release_gpu(own.gen, e);
    }
    while (t == 0 && (BUG == 4 ? atomicAdd(own.gen, 0u) : ld_acquire_gpu(own.gen)) < e) {
    }
    __syncthreads();
    x = own.result[t] % 1000 + b;
  }
  own.out[b * kThreads + t] = x;
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d)
    node.r[d] = {alloc<unsigned>(d, kBlocks * kThreads),
                 alloc<unsigned>(d, 1),
                 alloc<unsigned>(d, 2 * kRanks * kThreads),
                 alloc<unsigned>(d, kRanks),
                 alloc<unsigned>(d, kThreads),
                 alloc<unsigned>(d, 1),
                 alloc<unsigned>(d, kBlocks * kThreads)};
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    all_reduce<<<kBlocks, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, node.r[d].out, kBlocks * kThreads);
    for (int j = 0; j < kBlocks * kThreads; ++j) {
      unsigned total = 12 * (j % kThreads) + 1800 + 120;
      for (int e = 1; e < kEpochs; ++e) total = 12 * (total % 1000) + 12;
      wrong += out[j] != total % 1000 + j / kThreads;
    }
  }
  return finish(wrong, kRanks);
}
