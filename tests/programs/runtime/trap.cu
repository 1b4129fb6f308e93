// __trap ends the kernel with cudaErrorLaunchFailure; __nanosleep and clocks let time pass.
//
// finds: api_error
// faults: kernels that trap
#include "check.h"

namespace {

__global__ void Trap(int lane) {
  if (static_cast<int>(threadIdx.x) == lane) __trap();
}

__global__ void Sleep(long long* out) {
  unsigned long long before, after;
  const long long cycles = clock64();
  const clock_t short_cycles = clock();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
  for (int i = 0; i < 10; ++i) __nanosleep(1000);
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after));
  out[0] = clock64() - cycles;
  out[1] = static_cast<long long>(after - before);
  out[2] = clock() - short_cycles;
}

}  // namespace

int main() {
  long long* out = nullptr;
  CUDA_CHECK(cudaMalloc(&out, 3 * sizeof(long long)));
  Sleep<<<1, 1>>>(out);
  long long host[3];
  CUDA_CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  // Each sleep takes between nothing and twice what was asked for.
  REQUIRE(host[0] > 0 && host[1] >= 0 && host[1] < 40000, "%lld cycles, %lld ns", host[0], host[1]);
  REQUIRE(host[2] > 0, "clock: %lld", host[2]);

  Trap<<<1, 32>>>(40);  // nobody
  CUDA_CHECK(cudaDeviceSynchronize());
  Trap<<<1, 32>>>(3);
  CUDA_EXPECT(cudaErrorLaunchFailure, cudaDeviceSynchronize());
  CUDA_EXPECT(cudaErrorLaunchFailure, cudaDeviceSynchronize());
  return 0;
}
