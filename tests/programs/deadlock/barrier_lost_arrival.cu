// Deadlocks: a cuda::barrier in shared memory expects one arrival more than there are threads.
#include <cuda/barrier>

#include "check.h"

namespace {

__global__ void Meet() {
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x + 1);
  __syncthreads();
  barrier.arrive_and_wait();  // expect: waits here
}

}  // namespace

int main() {
  Meet<<<2, 64>>>();
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
