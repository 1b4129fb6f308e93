// Deadlocks in the poll of vLLM's barrier: a thread per peer spins on its own volatile flag until
// it equals the number of the meeting, and the last of eight peers never comes.
#include "check.h"

namespace {

constexpr int kRanks = 8;

__global__ void Meet(uint32_t* flags, uint32_t meeting) {
  if (threadIdx.x < kRanks) {
    volatile uint32_t* flag = flags + threadIdx.x;
    while (*flag != meeting) {  // expect: waits here
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) flags[kRanks] = meeting;
}

__global__ void Arrive(uint32_t* flags, uint32_t meeting) {
  if (threadIdx.x < kRanks - 1) *(volatile uint32_t*)(flags + threadIdx.x) = meeting;
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(1, 0);
  uint32_t* flags = ZeroedOn<uint32_t>(0, kRanks + 1);
  Meet<<<1, 64>>>(flags, 3);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaSetDevice(1));
  Arrive<<<1, 32>>>(flags, 3);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
