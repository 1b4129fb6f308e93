// Deadlocks in the poll of FlashInfer's Lamport all-reduce: each thread loads a vector of 16 bytes
// of every rank in each round, and goes on when none holds the sentinel. One rank never writes.
#include "check.h"

namespace {

constexpr int kRanks = 4, kThreads = 64;

__device__ bool Missing(float x) { return __float_as_uint(x) == 0x80000000u; }

__global__ void Fill(float4* slots, int ranks, float value) {
  for (int r = 0; r < ranks; ++r)
    slots[r * kThreads + threadIdx.x] = make_float4(value, value, value, value);
}

__global__ void Sum(const float4* slots, float* output) {
  float sum = 0;
  bool done = false;
  while (!done) {
    done = true;
    sum = 0;
    for (int r = 0; r < kRanks; ++r) {
      float4 v;
      asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                   : "l"(&slots[r * kThreads + threadIdx.x])  // expect: waits here
                   : "memory");
      done &= !Missing(v.x) && !Missing(v.y) && !Missing(v.z) && !Missing(v.w);
      sum += v.x + v.y + v.z + v.w;
    }
  }
  output[threadIdx.x] = sum;
}

}  // namespace

int main() {
  RequireDevices(1);
  float4* slots = ZeroedOn<float4>(0, kRanks * kThreads);
  float* output = ZeroedOn<float>(0, kThreads);
  Fill<<<1, kThreads>>>(slots, kRanks, -0.0f);
  Fill<<<1, kThreads>>>(slots, kRanks - 1, 1.0f);
  Sum<<<1, kThreads>>>(slots, output);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
