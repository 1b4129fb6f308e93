// Goes round for ever: blocks take a lock, look for work in a queue that nobody fills, and give the
// lock back. Memory changes all the time, but never to anything new.
#include "check.h"
#include "flags.h"

namespace {

__device__ __noinline__ uint32_t Take(uint32_t* lock, uint32_t* queued) {
  while (atomicCAS(lock, 0, blockIdx.x + 1) != 0) {
  }
  __threadfence();
  const uint32_t found = LoadAcquireSys(queued);  // expect: waits here
  __threadfence();
  atomicExch(lock, 0);
  return found;
}

__global__ void Consume(uint32_t* lock, uint32_t* queued) {
  while (Take(lock, queued) == 0) {
  }
}

}  // namespace

int main() {
  RequireDevices(1);
  uint32_t* words = ZeroedOn<uint32_t>(0, 2);
  Consume<<<3, 1>>>(words, words + 1);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the livelock did not happen\n");
  return 0;
}
