// Deadlocks: rank 1, another process, is killed while its kernel is between two signals into rank
// 0's memory. Rank 0's kernel waits without a bound for the second.
#include <signal.h>

#include "flags.h"
#include "two_processes.h"

namespace {

__global__ void SignalOnceAndHang(uint32_t* flag, const uint32_t* never) {
  StoreReleaseSys(flag, 1);
  while (LoadAcquireSys(never) == 0) {
  }
  StoreReleaseSys(flag, 2);
}

__global__ void Wait(uint32_t* flag) {
  uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(seen) : "l"(flag));  // expect: waits here
  } while (seen < 2);
}

void Run(int rank, Partner partner) {
  RequireDevices(2);
  uint32_t* mine = ZeroedOn<uint32_t>(rank);
  uint32_t* theirs = partner.ExchangeMemory(mine);
  if (rank == 0) {
    Wait<<<1, 1>>>(mine);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
  } else {
    SignalOnceAndHang<<<1, 1>>>(theirs, mine);
    CUDA_CHECK_LAUNCH();
    usleep(1000);
    kill(getpid(), SIGKILL);
  }
}

}  // namespace

int main() {
  const int child = RunTwoProcesses(Run);
  std::printf("the deadlock did not happen: the partner ended with %d\n", child);
  return 0;
}
