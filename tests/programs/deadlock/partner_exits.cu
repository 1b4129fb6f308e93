// Deadlocks: rank 1, another process, signals some rounds into rank 0's memory over IPC and ends in
// good order before the last one. Rank 0's kernel waits for it for ever.
#include "flags.h"
#include "two_processes.h"

namespace {

constexpr uint32_t kRounds = 4;

__global__ void Signal(uint32_t* flag, uint32_t rounds) {
  for (uint32_t round = 1; round <= rounds; ++round) StoreReleaseSys(flag, round);
}

__global__ void Wait(uint32_t* flag, uint32_t rounds) {
  uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(seen) : "l"(flag));  // expect: waits here
  } while (seen < rounds);
}

void Run(int rank, Partner partner) {
  RequireDevices(2);
  uint32_t* mine = ZeroedOn<uint32_t>(rank);
  uint32_t* theirs = partner.ExchangeMemory(mine);
  if (rank == 0) {
    Wait<<<1, 1>>>(mine, kRounds);
  } else {
    Signal<<<1, 1>>>(theirs, kRounds - 1);
  }
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  const int child = RunTwoProcesses(Run);
  std::printf("the deadlock did not happen: the partner ended with %d\n", child);
  return 0;
}
