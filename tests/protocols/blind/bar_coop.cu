// Cooperative grids on two devices: a grid barrier, then one thread per device meets the other device, then a grid
// barrier. The grid barriers make everything cumulative for the one thread's system-scope release and acquire.
// EXPECT 1 race: no grid barrier after the meeting; the other blocks do not wait for it
// EXPECT 2 race: only a block barrier before the meeting; the other blocks' stores are not included
// EXPECT 3 scope: the meeting releases at gpu scope
// EXPECT 4 none: a redundant fence of system scope in every thread before the grid barrier
// EXPECT 5 hang|race|barrier: the second grid barrier is reached by block 0 only
// EXPECT 6 race: no meeting before the next epoch's stores; the peer may still read
#include <cooperative_groups.h>
#include "common.h"

namespace cg = cooperative_groups;
constexpr int kRanks = 2, kBlocks = 3, kThreads = 32, kEpochs = 3, kN = kBlocks * kThreads;

struct Node {
  unsigned* data[kRanks];  // [kN]
  unsigned* flag[kRanks];
  unsigned* out[kRanks];  // [kEpochs][kN]
};

DEV void meet(const Node& node, int me, unsigned number) {
  cg::grid_group grid = cg::this_grid();
  if (BUG == 4) __threadfence_system();
  if (BUG == 2)
    __syncthreads();
  else
    grid.sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (BUG == 3)
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(node.flag[1 - me]), "r"(number)
                   : "memory");
    else
      st_release(node.flag[1 - me], number);
    wait_ge(node.flag[me], number);
  }
  if (BUG == 1)
    __syncthreads();
  else if (BUG != 5 || blockIdx.x == 0)
    grid.sync();
}

__global__ void run(Node node, int me) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  unsigned number = 0;
  for (int e = 0; e < kEpochs; ++e) {
    node.data[me][i] = e * 1000 + me * 100 + i;
    meet(node, me, ++number);
    node.out[me][e * kN + i] = node.data[1 - me][kN - 1 - i];
    if (BUG != 6) meet(node, me, ++number);
  }
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d) {
    node.data[d] = alloc<unsigned>(d, kN);
    node.flag[d] = alloc<unsigned>(d, 1);
    node.out[d] = alloc<unsigned>(d, kEpochs * kN);
  }
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    void* args[] = {&node, &d};
    CK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(run), dim3(kBlocks), dim3(kThreads),
                                   args, 0, 0));
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, node.out[d], kEpochs * kN);
    for (int j = 0; j < kEpochs * kN; ++j)
      wrong += out[j] != unsigned(j / kN * 1000 + (1 - d) * 100 + kN - 1 - j % kN);
  }
  return finish(wrong, kRanks);
}
