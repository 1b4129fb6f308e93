// Deadlocks: one warp polls a flag and stores what it saw into shared memory in every round, for
// the other warps of its block to see. The flag never comes.
#include "check.h"
#include "flags.h"

namespace {

__global__ void Forward(const uint32_t* flag) {
  __shared__ volatile uint32_t tail[32];
  __shared__ volatile uint32_t done;
  if (threadIdx.x == 0) done = 0;
  if (threadIdx.x < 32) tail[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (done == 0) {
      tail[threadIdx.x] = LoadAcquireSys(flag);
    }
  } else {
    while (tail[threadIdx.x % 32] == 0) {  // expect: waits here
    }
    done = 1;
  }
}

}  // namespace

int main() {
  RequireDevices(1);
  uint32_t* flag = ZeroedOn<uint32_t>(0);
  Forward<<<1, 64>>>(flag);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
