// Deadlocks: the barrier of TensorRT-LLM's all-reduce, where odd calls keep their flags behind
// those of even calls, at a place that is computed from the number of blocks. Call 1 has two
// blocks, call 2 has five: blocks 3 and 4 of call 2 use the flags of blocks 0 and 1 of call 1. A
// rank that is late misses the 1 that it waits for, because its peer has put a 2 there.
#include <thread>

#include "check.h"
#include "flags.h"

namespace {

constexpr int kRanks = 2;

__device__ void Delay() {
  const uint64_t until = GlobalTimer() + 100000;
  while (GlobalTimer() < until) {
  }
}

__global__ void Call(uint32_t* mine, uint32_t* theirs, int rank, uint32_t flag) {
  uint32_t place = kRanks + blockIdx.x * kRanks;
  if (flag % 2 == 1) place += (gridDim.x + 1) * kRanks;
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(theirs + place + rank, flag);
    if (rank == 0 && flag == 1) Delay();
    while (LoadAcquireSys(mine + place + 1 - rank) != flag) {  // expect: waits here
    }
  }
  __syncthreads();
}

void Run(int rank, uint32_t* mine, uint32_t* theirs) {
  CUDA_CHECK(cudaSetDevice(rank));
  Call<<<2, 32>>>(mine, theirs, rank, 1);
  CUDA_CHECK_LAUNCH();
  Call<<<5, 32>>>(mine, theirs, rank, 2);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  RequireDevices(kRanks);
  EnablePeer(0, 1);
  EnablePeer(1, 0);
  uint32_t* flags[kRanks] = {ZeroedOn<uint32_t>(0, 64), ZeroedOn<uint32_t>(1, 64)};
  std::thread rank1(Run, 1, flags[1], flags[0]);
  Run(0, flags[0], flags[1]);
  rank1.join();
  std::printf("the deadlock did not happen\n");
  return 0;
}
