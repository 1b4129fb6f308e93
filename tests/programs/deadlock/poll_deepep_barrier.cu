// Deadlocks in the poll of DeepEP's barrier: all threads of a block vote whether every rank's word
// is down to zero, lanes without a rank vote yes. The original gives up after minutes on the
// device's clock; that is left out here, so the wait has no end.
#include "check.h"

namespace {

constexpr int kRanks = 4;

__global__ void Barrier(int* words) {
  const int thread = threadIdx.x;
  if (thread < kRanks) atomicAdd_system(&words[thread], 1024);
  if (thread < kRanks - 1) atomicSub_system(&words[thread], 1024);  // the last rank never comes
  while (true) {
    int value = 0;
    if (thread < kRanks) value = *(volatile int*)&words[thread];  // expect: waits here
    if (__all_sync(~0u, value <= 0)) break;
  }
  __syncthreads();
  words[thread] = 0;
}

}  // namespace

int main() {
  RequireDevices(1);
  int* words = ZeroedOn<int>(0, 64);
  Barrier<<<1, 64>>>(words);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
