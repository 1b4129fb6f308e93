// The four blocks of a cluster smooth a ring of words of the peer device: each reads the edge of its
// right neighbour's shared memory, and cluster barriers separate writes from reads and the exit.
// EXPECT 1 race: no cluster barrier between the stores and the neighbour's read of them
// EXPECT 2 race: a block barrier instead of a cluster barrier between read and next write
// EXPECT 3 use_after_free|race: a block exits while its neighbour may still read its memory
// EXPECT 4 race: barrier.cluster.arrive.relaxed orders no stores before it, and there is no fence
// EXPECT 5 race: arrive and no wait before the reads, the wait comes after them
// EXPECT 6 none: the relaxed arrive follows a fence.acq_rel.cluster of each thread
#include "common.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int kN = 32, kBlocks = 4, kSteps = 3, kDev = 2;

__global__ void __cluster_dims__(kBlocks, 1, 1) work(const unsigned* src, unsigned* out) {
  __shared__ unsigned cell[kN];
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned t = threadIdx.x, rank = cluster.block_rank();
  const unsigned* right = cluster.map_shared_rank(cell, (rank + 1) % kBlocks);
  unsigned v = src[rank * kN + t];
  for (int step = 0; step < kSteps; ++step) {
    cell[t] = v;
    if (BUG == 1) {
      __syncthreads();
    } else if (BUG == 4) {
      asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;" ::: "memory");
    } else if (BUG == 5) {
      asm volatile("barrier.cluster.arrive.release;" ::: "memory");
      __syncthreads();
    } else if (BUG == 6) {
      asm volatile("fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed;" ::: "memory");
      asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    } else {
      cluster.sync();
    }
    v += t == kN - 1 ? right[0] : cell[t + 1];
    if (BUG == 5) asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    if (BUG == 2 && step < kSteps - 1)
      __syncthreads();
    else if (BUG != 3 || step < kSteps - 1)
      cluster.sync();
  }
  out[rank * kN + t] = v;
}

int main() {
  peers(kDev);
  constexpr int n = kBlocks * kN;
  unsigned *src[kDev], *out[kDev];
  std::vector<unsigned> v(n);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, n);
    out[d] = alloc<unsigned>(d, n);
    for (int i = 0; i < n; ++i) v[i] = 1000 * d + i * i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<kBlocks, kN>>>(src[1 - d], out[d]);
    CK(cudaGetLastError());
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    std::vector<unsigned> want = get(1 - d, src[1 - d], n);
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<unsigned> old = want;
      for (int i = 0; i < n; ++i) want[i] += old[(i + 1) % n];
    }
    const auto r = get(d, out[d], n);
    for (int i = 0; i < n; ++i) wrong += r[i] != want[i];
  }
  return finish(wrong, kDev);
}
