// Deadlocks in the poll of DeepEP's combine: one warp loads the tails of all queues and stores them
// into shared memory in every round, until the other warps say that they are done; these wait for a
// tail to move. No tail ever does, so the one warp stores the same values again and again.
#include "check.h"

namespace {

__global__ void Combine(const int* tails, int* output) {
  __shared__ volatile int known[32];
  __shared__ volatile int done;
  if (threadIdx.x < 32) known[threadIdx.x] = 0;
  if (threadIdx.x == 0) done = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (done == 0) {
      int tail;
      asm volatile("ld.acquire.sys.global.s32 %0, [%1];"
                   : "=r"(tail)
                   : "l"(tails + threadIdx.x)  // expect: waits here
                   : "memory");
      known[threadIdx.x] = tail;
    }
  } else {
    while (known[threadIdx.x % 32] == 0) {
    }
    done = 1;
    output[threadIdx.x] = known[threadIdx.x % 32];
  }
}

}  // namespace

int main() {
  RequireDevices(1);
  int* tails = ZeroedOn<int>(0, 32);
  int* output = ZeroedOn<int>(0, 64);
  Combine<<<1, 64>>>(tails, output);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
