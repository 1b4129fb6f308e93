// cuda::memcpy_async that completes on a cuda::barrier: sizes and alignments from 4 bytes to one
// bulk copy of a whole group.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <vector>

#include "check.h"

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 64;
constexpr int kCount = 1024;

__global__ void Sum(const int* in, int* out, int bytes) {
  __shared__ alignas(128) int buffer[kCount];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  const auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, kThreads);
  block.sync();
  for (int round = 0; round < 3; ++round) {
    if (bytes % 16 == 0) {
      cuda::memcpy_async(block, buffer, in + round * kCount, cuda::aligned_size_t<16>(bytes),
                         barrier);
    } else {
      cuda::memcpy_async(block, buffer, in + round * kCount, bytes, barrier);
    }
    barrier.arrive_and_wait();
    int sum = 0;
    for (int i = block.thread_rank(); i < bytes / 4; i += kThreads) sum += buffer[i];
    atomicAdd(out + round, sum);
    block.sync();
  }
}

}  // namespace

int main() {
  std::vector<int> host(3 * kCount);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int>(i * i % 1009);
  int *in, *out;
  CUDA_CHECK(cudaMalloc(&in, host.size() * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&out, 3 * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(in, host.data(), host.size() * sizeof(int), cudaMemcpyHostToDevice));
  for (const int bytes : {4, 100, 256, 4096}) {
    CUDA_CHECK(cudaMemset(out, 0, 3 * sizeof(int)));
    Sum<<<1, kThreads>>>(in, out, bytes);
    CUDA_CHECK(cudaGetLastError());
    int sums[3];
    CUDA_CHECK(cudaMemcpy(sums, out, sizeof(sums), cudaMemcpyDeviceToHost));
    for (int round = 0; round < 3; ++round) {
      int expected = 0;
      for (int i = 0; i < bytes / 4; ++i) expected += host[round * kCount + i];
      REQUIRE(sums[round] == expected, "%d bytes, round %d: %d instead of %d", bytes, round,
              sums[round], expected);
    }
  }
  return 0;
}
