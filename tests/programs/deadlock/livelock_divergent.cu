// Goes round for ever: lanes of a warp poll different words by different branches of one loop, and
// vote. One of the words never comes, and the other one has.
#include "check.h"
#include "flags.h"

namespace {

__global__ void Wait(const uint32_t* words) {
  uint32_t seen = 0;
  do {
    if (threadIdx.x % 2 == 0) {
      seen = LoadAcquireSys(words);
      __nanosleep(20);
    } else {
      seen = LoadAcquireSys(words + 1);  // expect: waits here
      __nanosleep(40);
    }
    __syncwarp();
  } while (!__all_sync(0xffffffffu, seen != 0));
}

__global__ void Set(uint32_t* word) { StoreReleaseSys(word, 1); }

}  // namespace

int main() {
  RequireDevices(1);
  uint32_t* words = ZeroedOn<uint32_t>(0, 2);
  Set<<<1, 1>>>(words);
  CUDA_CHECK_LAUNCH();
  Wait<<<1, 32>>>(words);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the livelock did not happen\n");
  return 0;
}
