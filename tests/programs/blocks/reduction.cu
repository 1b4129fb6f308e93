// Block-wide reductions in the textbook variants: interleaved and sequential addressing in shared
// memory, unrolled last warp, shuffles with one partial sum per warp; ragged ends; the same by a
// grid that finishes with the last block (threadfence reduction).
#include "arrays.h"

namespace {

constexpr int kThreads = 256;

template <int kVariant>
__device__ long long BlockSum(long long value, long long* shared) {
  const int thread = threadIdx.x;
  if constexpr (kVariant == 0) {
    shared[thread] = value;
    __syncthreads();
    for (int stride = 1; stride < kThreads; stride *= 2) {
      if (thread % (2 * stride) == 0) shared[thread] += shared[thread + stride];
      __syncthreads();
    }
    return shared[0];
  } else if constexpr (kVariant == 1) {
    shared[thread] = value;
    __syncthreads();
    for (int stride = kThreads / 2; stride > 32; stride /= 2) {
      if (thread < stride) shared[thread] += shared[thread + stride];
      __syncthreads();
    }
    if (thread < 32) {
      volatile long long* warp = shared;
      for (int stride = 32; stride > 0; stride /= 2) {
        const long long sum = warp[thread] + warp[thread + stride];
        __syncwarp();
        warp[thread] = sum;
        __syncwarp();
      }
    }
    __syncthreads();
    return shared[0];
  } else {
    for (int distance = 16; distance > 0; distance /= 2) {
      value += __shfl_down_sync(0xffffffffu, value, distance);
    }
    if (thread % 32 == 0) shared[thread / 32] = value;
    __syncthreads();
    if (thread < 32) {
      value = thread < kThreads / 32 ? shared[thread] : 0;
      for (int distance = 16; distance > 0; distance /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, distance);
      }
      if (thread == 0) shared[0] = value;
    }
    __syncthreads();
    return shared[0];
  }
}

__device__ unsigned finished;

template <int kVariant>
__global__ void Sum(const int* in, int count, volatile long long* partial, long long* total) {
  __shared__ long long shared[kThreads];
  __shared__ bool last;
  long long mine = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) {
    mine += in[i];
  }
  const long long sum = BlockSum<kVariant>(mine, shared);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();  // an acquire: without it the last block may read what was there before
  }
  __syncthreads();
  if (!last) return;
  long long rest = 0;
  for (int i = threadIdx.x; i < static_cast<int>(gridDim.x); i += kThreads) rest += partial[i];
  rest = BlockSum<kVariant>(rest, shared);
  if (threadIdx.x == 0) *total = rest;
}

template <int kVariant>
void Check(const std::vector<int>& values) {
  const int* in = ToDevice(values);
  for (const int count : {1, 31, 255, 256, 257, 1000, static_cast<int>(values.size())}) {
    for (const int blocks : {1, 3, 37}) {
      long long* partial = Unwritten<long long>(blocks + 1);
      Sum<kVariant><<<blocks, kThreads>>>(in, count, partial, partial + blocks);
      long long expected = 0;
      for (int i = 0; i < count; ++i) expected += values[i];
      const long long got = ToHost(partial + blocks, 1)[0];
      REQUIRE(got == expected, "variant %d, %d elements, %d blocks: %lld, expected %lld", kVariant,
              count, blocks, got, expected);
    }
  }
}

}  // namespace

int main() {
  Random random(5);
  std::vector<int> values;
  for (int i = 0; i < 5000; ++i) values.push_back(static_cast<int>(random.Next()));
  Check<0>(values);
  Check<1>(values);
  Check<2>(values);
  std::puts("PASS reduction: 3 variants");
}
