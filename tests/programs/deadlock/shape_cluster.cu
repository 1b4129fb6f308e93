// The blocks of a cluster meet in every round; the first of them polls for all.
// answered: the same ends when the flag comes
// nvcc: -arch=sm_90
#include <cooperative_groups.h>

#include "poll_shape.h"

namespace cg = cooperative_groups;

namespace {

__global__ void __cluster_dims__(2, 1, 1) Wait(const uint32_t* flags) {
  __shared__ uint32_t seen;
  uint32_t command = 0;
  while (command == 0) {
    if (cg::this_cluster().block_rank() == 0 && threadIdx.x == 0) {
      seen = LoadAcquireSys(flags);  // expect: waits here
    }
    cg::this_cluster().sync();
    command = *cg::this_cluster().map_shared_rank(&seen, 0);
    cg::this_cluster().sync();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 1, [](uint32_t* flags) { Wait<<<2, 64>>>(flags); });
}
