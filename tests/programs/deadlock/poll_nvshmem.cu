// Deadlocks in the poll of NVSHMEM's wait_until_all: in every round a thread looks at all signals
// and counts those that have their value. The last of 16 never gets it.
#include "check.h"

namespace {

constexpr int kSignals = 16;

__global__ void WaitUntilAll(const uint64_t* signals, uint64_t value, int* output) {
  int there = 0;
  while (there < kSignals) {
    there = 0;
    for (int i = 0; i < kSignals; ++i) {
      const uint64_t seen = *(const volatile uint64_t*)&signals[i];  // expect: waits here
      there += seen >= value;
    }
  }
  __threadfence_system();
  *output = there;
}

__global__ void Signal(uint64_t* signals, uint64_t value) {
  __threadfence_system();
  if (threadIdx.x < kSignals - 1) *(volatile uint64_t*)&signals[threadIdx.x] = value;
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(1, 0);
  uint64_t* signals = ZeroedOn<uint64_t>(0, kSignals);
  int* output = ZeroedOn<int>(0);
  WaitUntilAll<<<1, 1>>>(signals, 2, output);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaSetDevice(1));
  Signal<<<1, 32>>>(signals, 2);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
