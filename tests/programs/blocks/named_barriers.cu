// Barriers that warps of one block reach on their own ways: bar.sync and bar.arrive with a number
// and a thread count (producers and consumers in two buffers), __syncthreads from two source lines,
// and the barriers that count and combine predicates.
#include "arrays.h"

namespace {

__device__ void Sync(int barrier, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ void Arrive(int barrier, int threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Warps 0 and 1 fill, warps 2 and 3 drain. Barriers 1 and 2 say "full", 3 and 4 say "empty".
__global__ void TwoBuffers(int* out, int rounds) {
  __shared__ int buffer[2][64];
  const int i = threadIdx.x % 64;
  if (threadIdx.x < 64) {
    for (int round = 0; round < rounds; ++round) {
      Sync(3 + round % 2, 128);
      buffer[round % 2][i] = round * 64 + i;
      Arrive(1 + round % 2, 128);
    }
  } else {
    Arrive(3, 128);
    Arrive(4, 128);
    for (int round = 0; round < rounds; ++round) {
      Sync(1 + round % 2, 128);
      out[round * 64 + i] = buffer[round % 2][63 - i];
      if (round + 2 < rounds) Arrive(3 + round % 2, 128);
    }
  }
}

// Even and odd warps synchronise at different lines; the hardware counts arrivals, not places.
__global__ void TwoPlaces(int* out) {
  __shared__ int board[4];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) board[warp] = warp + 1;
  if (warp % 2) {
    asm volatile("bar.sync 0;" ::: "memory");
  } else {
    asm volatile("bar.sync 0;" ::: "memory");
    if (lane == 0) out[warp + 4] = 7;
  }
  if (lane == 0) out[warp] = board[0] + board[1] * 10 + board[2] * 100 + board[3] * 1000;
}

__global__ void Predicates(const int* limits, int count, int* out) {
  for (int k = 0; k < count; ++k) {
    const bool mine = static_cast<int>(threadIdx.x) < limits[k];
    const int number = __syncthreads_count(mine);
    const int all = __syncthreads_and(mine);
    const int some = __syncthreads_or(mine);
    int* row = out + (k * blockDim.x + threadIdx.x) * 3;
    row[0] = number;
    row[1] = all != 0;
    row[2] = some != 0;
  }
}

}  // namespace

int main() {
  constexpr int kRounds = 11;
  int* out = Unwritten<int>(4000);
  TwoBuffers<<<1, 128>>>(out, kRounds);
  std::vector<int> expected;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 64; ++i) expected.push_back(round * 64 + 63 - i);
  }
  REQUIRE_SAME(ToHost(out, expected.size()), expected);

  CUDA_CHECK(cudaMemset(out, 0, 8 * sizeof(int)));
  TwoPlaces<<<1, 128>>>(out);
  const std::vector<int> places = {4321, 4321, 4321, 4321, 7, 0, 7, 0};
  REQUIRE_SAME(ToHost(out, 8), places);

  constexpr int kThreads = 100;  // the last warp is not full
  const std::vector<int> limits = {0, 1, 31, 32, 33, 99, 100, 1000};
  Predicates<<<1, kThreads>>>(ToDevice(limits), static_cast<int>(limits.size()), out);
  expected.clear();
  for (const int limit : limits) {
    for (int thread = 0; thread < kThreads; ++thread) {
      const int number = limit < kThreads ? limit : kThreads;
      expected.insert(expected.end(), {number, number == kThreads, number > 0});
    }
  }
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::puts("PASS named_barriers");
}
