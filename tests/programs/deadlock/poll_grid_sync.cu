// Deadlocks in the poll of cooperative groups: grid.sync() is waited for by all blocks but one,
// which has left its loop one round early.
#include <cooperative_groups.h>

#include "check.h"

namespace {

constexpr int kBlocks = 4;

__global__ void Rounds(int* output) {
  const auto grid = cooperative_groups::this_grid();
  const int rounds = blockIdx.x == 2 ? 4 : 5;
  for (int round = 0; round < rounds; ++round) {
    output[grid.thread_rank()] = round;
    grid.sync();  // expect: waits here
  }
}

}  // namespace

int main() {
  RequireDevices(1);
  int* output = ZeroedOn<int>(0, kBlocks * 64);
  void* arguments[] = {&output};
  CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Rounds), dim3(kBlocks), dim3(64),
                                         arguments, 0, nullptr));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
