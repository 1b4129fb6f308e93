// Deadlocks: a barrier between two devices, used several times. Device 1 counts its epochs from
// zero where device 0 counts from one, so in the last round device 0 waits for an epoch that never
// comes.
#include <thread>

#include "check.h"
#include "flags.h"

namespace {

constexpr uint32_t kRounds = 5;

__device__ void WaitFor(const uint32_t* flag, uint32_t epoch) {
  while (LoadAcquireSys(flag) < epoch) {  // expect: waits here
  }
}

__global__ void Barriers(uint32_t* mine, uint32_t* theirs, uint32_t first_epoch) {
  for (uint32_t round = 0; round < kRounds; ++round) {
    StoreReleaseSys(theirs, first_epoch + round);
    WaitFor(mine, first_epoch + round);
  }
}

void Run(int rank, uint32_t* mine, uint32_t* theirs) {
  CUDA_CHECK(cudaSetDevice(rank));
  Barriers<<<1, 1>>>(mine, theirs, rank == 0 ? 1 : 0);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(0, 1);
  EnablePeer(1, 0);
  uint32_t* flags[2] = {ZeroedOn<uint32_t>(0), ZeroedOn<uint32_t>(1)};
  std::thread rank1(Run, 1, flags[1], flags[0]);
  Run(0, flags[0], flags[1]);
  rank1.join();
  std::printf("the deadlock did not happen\n");
  return 0;
}
