// Deadlocks: a hand-made grid barrier in an ordinary launch with one block more than the device can
// hold. Blocks take a whole multiprocessor each (shared memory), and none leaves before the last
// one has come.
#include "check.h"

namespace {

constexpr int kSharedBytes = 200 << 10;

__global__ void GridBarrier(uint32_t* arrived) {
  extern __shared__ uint32_t whole_multiprocessor[];
  whole_multiprocessor[threadIdx.x] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    volatile uint32_t* count = arrived;
    while (*count < gridDim.x) {  // expect: waits here
    }
    __threadfence();
  }
  __syncthreads();
  if (whole_multiprocessor[threadIdx.x] != blockIdx.x) *arrived = 0;
}

}  // namespace

int main() {
  RequireDevices(1);
  int processors = 0, per_processor = 0;
  CUDA_CHECK(
      cudaFuncSetAttribute(GridBarrier, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, GridBarrier, 32, kSharedBytes));
  uint32_t* arrived = ZeroedOn<uint32_t>(0);
  GridBarrier<<<processors * per_processor + 1, 32, kSharedBytes>>>(arrived);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen: %u blocks\n", Fetch(arrived));
  return 0;
}
