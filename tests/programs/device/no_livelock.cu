// What goes round for long and yet gets somewhere: a count kept as digits in memory, a wait that a
// clock ends, and a loop around a barrier that the host ends late. None of them may be taken for a
// livelock.
#include <unistd.h>

#include "check.h"
#include "flags.h"

namespace {

constexpr int kDigits = 6, kBase = 8;

__device__ __noinline__ bool Count(volatile uint32_t* digits) {
  for (int i = 0; i < kDigits; ++i) {
    const uint32_t next = digits[i] + 1;
    digits[i] = next % kBase;
    if (next != kBase) return false;
  }
  return true;
}

__global__ void Odometer(volatile uint32_t* digits) {
  while (!Count(digits)) {
  }
}

__global__ void Patient(const uint32_t* flag, uint32_t* gave_up) {
  const long long start = clock64();
  bool over = false;
  do {
    over = LoadAcquireSys(flag) != 0 || clock64() - start > 20'000'000;
  } while (!__syncthreads_or(over));
  if (threadIdx.x == 0) *gave_up = 1;
}

__global__ void Served(const volatile uint32_t* flag) {
  while (!__syncthreads_or(*flag != 0)) {
  }
}

}  // namespace

int main() {
  RequireDevices(1);
  uint32_t* words = ZeroedOn<uint32_t>(0, kDigits + 2);
  Odometer<<<1, 1>>>(words);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  Patient<<<1, 64>>>(words + kDigits, words + kDigits + 1);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  volatile uint32_t* flag = nullptr;
  CUDA_CHECK(cudaHostAlloc(reinterpret_cast<void**>(const_cast<uint32_t**>(&flag)), 4,
                           cudaHostAllocMapped));
  *flag = 0;
  Served<<<1, 64>>>(flag);
  CUDA_CHECK_LAUNCH();
  usleep(300'000);
  *flag = 1;
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaFreeHost(const_cast<uint32_t*>(flag)));
  CUDA_CHECK(cudaFree(words));
  std::printf("PASS\n");
  return 0;
}
