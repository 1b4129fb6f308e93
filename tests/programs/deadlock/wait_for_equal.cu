// Deadlocks: a barrier whose counter only grows, where ranks wait until it equals what this round
// makes of it. A fast peer has added for the next round before a late rank looks.
#include <thread>

#include "check.h"
#include "flags.h"

namespace {

constexpr uint32_t kRanks = 2, kRounds = 3;

__device__ void Delay() {
  const uint64_t until = GlobalTimer() + 100000;
  while (GlobalTimer() < until) {
  }
}

__device__ void Add(uint32_t* counter) {
  asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}

__global__ void Barriers(uint32_t* mine, uint32_t* theirs, int rank) {
  for (uint32_t round = 1; round <= kRounds; ++round) {
    Add(mine);
    Add(theirs);
    if (rank == 0 && round == 1) Delay();
    while (LoadAcquireSys(mine) != round * kRanks) {  // expect: waits here
    }
  }
}

void Run(int rank, uint32_t* mine, uint32_t* theirs) {
  CUDA_CHECK(cudaSetDevice(rank));
  Barriers<<<1, 1>>>(mine, theirs, rank);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  RequireDevices(kRanks);
  EnablePeer(0, 1);
  EnablePeer(1, 0);
  uint32_t* counters[kRanks] = {ZeroedOn<uint32_t>(0), ZeroedOn<uint32_t>(1)};
  std::thread rank1(Run, 1, counters[1], counters[0]);
  Run(0, counters[0], counters[1]);
  rank1.join();
  std::printf("the deadlock did not happen\n");
  return 0;
}
