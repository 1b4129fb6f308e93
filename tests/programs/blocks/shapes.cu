// Grids and blocks of one, two and three dimensions, with sizes that are no multiples of a warp:
// every index and size that a thread can ask for, and that each thread exists exactly once.
#include "arrays.h"

namespace {

__global__ void Record(unsigned* visits, unsigned long long* sum, unsigned* wrong, dim3 grid,
                       dim3 block) {
  if (gridDim.x != grid.x || gridDim.y != grid.y || gridDim.z != grid.z || blockDim.x != block.x ||
      blockDim.y != block.y || blockDim.z != block.z) {
    atomicAdd(wrong, 1);
  }
  const unsigned inside = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned number = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  if (lane != inside % 32 || warpSize != 32) atomicAdd(wrong, 1);
  // Threads of a warp are consecutive in x, then y, then z.
  const unsigned first = __shfl_sync(__activemask(), inside, 0);
  if (first != inside / 32 * 32) atomicAdd(wrong, 1);
  atomicAdd(&visits[number * blockDim.x * blockDim.y * blockDim.z + inside], 1 + inside);
  atomicAdd(sum, static_cast<unsigned long long>(number) << 20 | inside);
}

}  // namespace

int main() {
  const struct {
    dim3 grid, block;
  } shapes[] = {{dim3(1), dim3(1)},
                {dim3(5), dim3(33)},
                {dim3(3, 2), dim3(7, 5)},
                {dim3(2, 3, 4), dim3(4, 3, 5)},
                {dim3(1, 1, 9), dim3(1, 1, 64)},
                {dim3(1, 130), dim3(2, 31)},
                {dim3(2), dim3(1024)},
                {dim3(1), dim3(8, 8, 16)}};
  for (const auto& [grid, block] : shapes) {
    const unsigned threads = block.x * block.y * block.z, blocks = grid.x * grid.y * grid.z;
    unsigned* visits = Zeroed<unsigned>(threads * blocks);
    unsigned long long* sum = Zeroed<unsigned long long>(1);
    unsigned* wrong = Zeroed<unsigned>(1);
    Record<<<grid, block>>>(visits, sum, wrong, grid, block);
    std::vector<unsigned> expected;
    unsigned long long expected_sum = 0;
    for (unsigned i = 0; i < threads * blocks; ++i) {
      expected.push_back(1 + i % threads);
      expected_sum += static_cast<unsigned long long>(i / threads) << 20 | i % threads;
    }
    REQUIRE_SAME(ToHost(visits, expected.size()), expected);
    REQUIRE(Fetch(sum) == expected_sum, "the sum over blocks and threads is wrong");
    REQUIRE(Fetch(wrong) == 0, "%u threads saw wrong numbers", Fetch(wrong));
  }
  std::puts("PASS shapes: 8 shapes");
}
