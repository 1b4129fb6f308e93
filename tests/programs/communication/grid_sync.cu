// A cooperative launch reduces an array in phases separated by grid.sync(): one partial sum per
// block, a tree over the blocks, and every block reads the total.
// Usage: grid_sync [blocks, a power of two]
#include <cooperative_groups.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 128;
constexpr int kCount = 10000;

__global__ void Sum(const uint32_t* data, uint32_t* partial, uint32_t* totals) {
  __shared__ uint32_t lanes[kThreads];
  cg::grid_group grid = cg::this_grid();
  uint32_t sum = 0;
  for (unsigned i = grid.thread_rank(); i < kCount; i += grid.size()) sum += data[i];
  lanes[threadIdx.x] = sum;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) lanes[threadIdx.x] += lanes[threadIdx.x + half];
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = lanes[0];

  for (unsigned half = gridDim.x / 2; half > 0; half /= 2) {
    grid.sync();
    if (threadIdx.x == 0 && blockIdx.x < half) partial[blockIdx.x] += partial[blockIdx.x + half];
  }
  grid.sync();
  if (threadIdx.x == 0) totals[blockIdx.x] = partial[0];
}

}  // namespace

int main(int argc, char** argv) {
  const int blocks = int(Argument(argc, argv, 1, 16));
  REQUIRE(blocks > 0 && (blocks & (blocks - 1)) == 0, "%d is not a power of two", blocks);
  RequireDevices(1);
  int cooperative = 0, processors = 0, per_processor = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
  CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, Sum, kThreads, 0));
  REQUIRE(cooperative == 1, "the device has no cooperative launch");
  REQUIRE(blocks <= processors * per_processor, "only %d blocks fit", processors * per_processor);

  std::vector<uint32_t> host(kCount);
  uint32_t expected = 0;
  for (int i = 0; i < kCount; ++i) expected += host[i] = i * 2654435761u;
  uint32_t* data = ZeroedOn<uint32_t>(0, kCount);
  uint32_t* partial = ZeroedOn<uint32_t>(0, blocks);
  uint32_t* totals = ZeroedOn<uint32_t>(0, blocks);
  Upload(data, host.data(), kCount);

  void* arguments[] = {&data, &partial, &totals};
  for (int launch = 0; launch < 2; ++launch) {  // twice: the barrier's state must survive a launch
    CUDA_CHECK(cudaMemset(totals, 0, blocks * sizeof(uint32_t)));
    CUDA_CHECK(cudaLaunchCooperativeKernel(Sum, blocks, kThreads, arguments, 0, nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<uint32_t> got(blocks);
    CUDA_CHECK(cudaMemcpy(got.data(), totals, blocks * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    for (int block = 0; block < blocks; ++block) {
      REQUIRE(got[block] == expected, "launch %d, block %d: got %u, expected %u", launch, block,
              got[block], expected);
    }
  }
  CUDA_CHECK(cudaFree(data));
  CUDA_CHECK(cudaFree(partial));
  CUDA_CHECK(cudaFree(totals));
  std::printf("PASS grid_sync: %d blocks\n", blocks);
  return 0;
}
