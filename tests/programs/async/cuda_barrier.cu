// cuda::barrier in shared memory: arrive and wait apart with work between, many phases, and warps
// that drop out one after the other.
#include <cuda/barrier>
#include <utility>

#include "arrays.h"

// A barrier in shared memory is initialised by init(), not by its constructor.
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace {

using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Arrive early, do other work, wait late: the sum of the phase before is complete.
__global__ void Split(int* out, int rounds) {
  __shared__ Barrier barrier;
  __shared__ int sums[2];
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    sums[0] = sums[1] = 0;
  }
  __syncthreads();
  int own = threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    atomicAdd(&sums[round % 2], own);
    auto token = barrier.arrive();
    own = own * 5 % 101;
    barrier.wait(std::move(token));
    if (threadIdx.x == 0) out[round] = sums[round % 2];
    barrier.arrive_and_wait();
    if (threadIdx.x == 0) sums[round % 2] = 0;
    barrier.arrive_and_wait();
  }
}

// Warp w leaves after w rounds and drops out.
__global__ void Dropping(int* out) {
  __shared__ Barrier barrier;
  __shared__ int count;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    count = 0;
  }
  __syncthreads();
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int round = 0; round < warps; ++round) {
    if (warp < round) {
      barrier.arrive_and_drop();
      return;
    }
    atomicAdd(&count, 1);
    barrier.arrive_and_wait();
    if (threadIdx.x == blockDim.x - 1) out[round] = count;
    barrier.arrive_and_wait();
  }
}

}  // namespace

int main() {
  constexpr int kThreads = 96, kRounds = 12;
  int* out = Unwritten<int>(kRounds);
  Split<<<1, kThreads>>>(out, kRounds);
  std::vector<int> expected(kRounds, 0);
  for (int thread = 0; thread < kThreads; ++thread) {
    for (int round = 0, own = thread; round < kRounds; ++round, own = own * 5 % 101)
      expected[round] += own;
  }
  REQUIRE_SAME(ToHost(out, kRounds), expected);

  Dropping<<<1, 128>>>(out);
  const std::vector<int> counts = {128, 128 + 96, 128 + 96 + 64, 128 + 96 + 64 + 32};
  REQUIRE_SAME(ToHost(out, 4), counts);
  std::puts("PASS cuda_barrier");
}
