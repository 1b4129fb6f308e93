// A histogram over words of the peer device, its bins spread over the shared memory of a cluster's
// two blocks, which add by atomics into each other's bins and then send their bins to the peer.
// EXPECT 1 scope|race: atomics of block scope (atomicAdd_block) on bins that both blocks add to
// EXPECT 2 race: the bins are cleared with a block barrier only, the other block may add before
// EXPECT 3 race: the bins are read after a block barrier only, the other block may still add
// EXPECT 4 race: own bins are incremented by ordinary accesses while the other block adds to them
// EXPECT 5 none: atomics of system scope are wider than needed
#include "common.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int kThreads = 64, kBins = 32, kPerBlock = 256, kRounds = 2, kDev = 2;

__global__ void __cluster_dims__(2, 1, 1) work(const unsigned* src, unsigned* out) {
  __shared__ unsigned bins[kBins / 2];
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned t = threadIdx.x, rank = cluster.block_rank();
  for (int round = 0; round < kRounds; ++round) {
    if (t < kBins / 2) bins[t] = 0;
    if (BUG == 2)
      __syncthreads();
    else
      cluster.sync();
    for (unsigned i = t; i < kPerBlock; i += kThreads) {
      const unsigned bin = src[(round * 2 + rank) * kPerBlock + i] % kBins;
      unsigned* p = cluster.map_shared_rank(bins, bin / (kBins / 2)) + bin % (kBins / 2);
      if (BUG == 1)
        atomicAdd_block(p, 1);
      else if (BUG == 5)
        atomicAdd_system(p, 1);
      else if (BUG == 4 && bin / (kBins / 2) == rank)
        *p = *p + 1;
      else
        atomicAdd(p, 1);
    }
    if (BUG == 3)
      __syncthreads();
    else
      cluster.sync();
    if (t < kBins / 2) out[round * kBins + rank * (kBins / 2) + t] = bins[t];
  }
  if (BUG == 3) cluster.sync();
}

int main() {
  peers(kDev);
  constexpr int n = kRounds * 2 * kPerBlock;
  unsigned *src[kDev], *out[kDev];
  std::vector<unsigned> v(n);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, n);
    out[d] = alloc<unsigned>(d, kRounds * kBins);
    for (int i = 0; i < n; ++i) v[i] = (d + 3) * i * 7 + i / 5;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<2, kThreads>>>(src[1 - d], out[1 - d]);
    CK(cudaGetLastError());
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    std::vector<unsigned> want(kRounds * kBins);
    const auto s = get(d, src[d], n), r = get(d, out[d], kRounds * kBins);
    for (int i = 0; i < n; ++i) ++want[i / (2 * kPerBlock) * kBins + s[i] % kBins];
    for (int i = 0; i < kRounds * kBins; ++i) wrong += r[i] != want[i];
  }
  return finish(wrong, kDev);
}
