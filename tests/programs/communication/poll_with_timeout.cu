// Polls for a bounded time, by clock64 as DeepEP or by globaltimer, and traps when it is over:
// within moments of wall time, however long the bound is. With an answer the same kernels end well.
// run clock: | clock
// run timer: | timer
// run answered: --check | answered
// faults: kernels that trap
// finds: api_error
#include <cstring>

#include "check.h"
#include "flags.h"

namespace {

__global__ void WaitByClock(const uint32_t* flag, long long limit) {
  const long long start = clock64();
  while (LoadAcquireSys(flag) == 0) {
    if (clock64() - start > limit) __trap();
  }
}

__global__ void WaitByTimer(const uint32_t* flag, uint64_t limit) {
  if (threadIdx.x == 0) {
    const uint64_t start = GlobalTimer();
    while (LoadAcquireSys(flag) == 0) {
      if (GlobalTimer() - start > limit) asm volatile("trap;");
    }
  }
  __syncthreads();
}

__global__ void Raise(uint32_t* flag) { StoreReleaseSys(flag, 1); }

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "clock";
  const bool answered = std::strcmp(what, "answered") == 0;
  RequireDevices(3);
  for (int device = 0; device < 2; ++device) {
    if (std::strcmp(what, device == 0 ? "timer" : "clock") == 0) continue;
    EnablePeer(2, device);
    uint32_t* flag = ZeroedOn<uint32_t>(device);
    if (device == 0) {
      WaitByClock<<<1, 32>>>(flag, 200'000'000'000LL);
    } else {
      WaitByTimer<<<2, 64>>>(flag, 60'000'000'000ull);
    }
    CUDA_CHECK_LAUNCH();
    if (answered) {
      CUDA_CHECK(cudaSetDevice(2));
      Raise<<<1, 1>>>(flag);
      CUDA_CHECK_LAUNCH();
      CUDA_CHECK(cudaSetDevice(device));
    }
    CUDA_EXPECT(answered ? cudaSuccess : cudaErrorLaunchFailure, cudaDeviceSynchronize());
  }
  std::printf(answered ? "every wait has ended\n" : "the time is over\n");
  return 0;
}
