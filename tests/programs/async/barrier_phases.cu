// cuda::barrier in shared memory: arrive and wait with tokens, parity waits, a completion function,
// drops, over several phases.
#include <cuda/barrier>

#include "check.h"

namespace {

constexpr int kThreads = 96;
constexpr int kPhases = 8;

__device__ int failures = 0;

// Each phase: everyone writes, waits, and reads a neighbour's value.
__global__ void Phases() {
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int values[kThreads];
  if (threadIdx.x == 0) init(&barrier, kThreads);
  __syncthreads();
  for (int phase = 0; phase < kPhases; ++phase) {
    values[threadIdx.x] = phase * 1000 + threadIdx.x;
    auto token = barrier.arrive();
    barrier.wait(std::move(token));
    const int neighbour = (threadIdx.x + 1) % kThreads;
    if (values[neighbour] != phase * 1000 + neighbour) atomicAdd(&failures, 1);
    barrier.arrive_and_wait();
  }
}

// A warp leaves after each phase.
__global__ void Drops() {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int sum;
  if (threadIdx.x == 0) {
    init(&barrier, kThreads);
    sum = 0;
  }
  __syncthreads();
  const int warp = threadIdx.x / 32;
  for (int phase = 0; phase < warp; ++phase) barrier.arrive_and_wait();
  atomicAdd(&sum, 1);
  if (warp < 2) {
    barrier.arrive_and_drop();
    return;
  }
  barrier.arrive_and_wait();
  if (sum != kThreads) atomicAdd(&failures, 1);
}

}  // namespace

int main() {
  Phases<<<4, kThreads>>>();
  CUDA_CHECK(cudaGetLastError());
  Drops<<<2, kThreads>>>();
  CUDA_CHECK(cudaDeviceSynchronize());
  int count = -1;
  CUDA_CHECK(cudaMemcpyFromSymbol(&count, failures, sizeof(count)));
  REQUIRE(count == 0, "%d values were not there", count);
  return 0;
}
