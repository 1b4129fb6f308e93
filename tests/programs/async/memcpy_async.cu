// cooperative_groups::memcpy_async with wait and wait_prior, and cuda::memcpy_async completing on a
// cuda::barrier; sizes that are no multiple of 16 bytes or of the block.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>

#include "arrays.h"

// A barrier in shared memory is initialised by init(), not by its constructor.
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

namespace {

constexpr int kMost = 500;

__global__ void Groups(const int* in, int count, int* out) {
  __shared__ alignas(16) int first[kMost], second[kMost];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, first, in, sizeof(int) * count);
  cg::memcpy_async(block, second, in + kMost, sizeof(int) * count);
  cg::wait_prior<1>(block);
  for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = first[count - 1 - i];
  cg::wait(block);
  for (int i = threadIdx.x; i < count; i += blockDim.x) out[count + i] = second[count - 1 - i];
}

__global__ void OnBarrier(const int* in, int count, int* out) {
  __shared__ alignas(16) int board[kMost];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  cuda::memcpy_async(block, board, in, sizeof(int) * count, barrier);
  barrier.arrive_and_wait();
  for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = board[count - 1 - i] * 3;
}

}  // namespace

int main() {
  Random random(113);
  std::vector<int> in;
  for (int i = 0; i < 2 * kMost; ++i) in.push_back(static_cast<int>(random.Next()) / 4);
  const int* source = ToDevice(in);
  for (const int count : {1, 3, 64, 77, 256, kMost}) {
    std::vector<int> both, tripled;
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < count; ++i) both.push_back(in[half * kMost + count - 1 - i]);
    }
    for (int i = 0; i < count; ++i) tripled.push_back(in[count - 1 - i] * 3);
    int* out = Unwritten<int>(2 * kMost);
    Groups<<<1, 64>>>(source, count, out);
    REQUIRE_SAME(ToHost(out, 2 * count), both);
    OnBarrier<<<1, 64>>>(source, count, out);
    REQUIRE_SAME(ToHost(out, count), tripled);
  }
  std::puts("PASS memcpy_async");
}
