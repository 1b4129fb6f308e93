// Goes round for ever: a block polls a flag, meets at a barrier and asks whether any thread has
// seen it, again and again. The flag never comes.
#include "check.h"
#include "flags.h"

namespace {

__global__ void Wait(const uint32_t* flag) {
  uint32_t seen = 0;
  do {
    if (threadIdx.x == 0) seen = LoadAcquireSys(flag);  // expect: waits here
  } while (!__syncthreads_or(seen != 0));
}

}  // namespace

int main() {
  RequireDevices(2);
  for (int device = 0; device < 2; ++device) {
    uint32_t* flag = ZeroedOn<uint32_t>(device);
    CUDA_CHECK(cudaSetDevice(device));
    Wait<<<2, 128>>>(flag);
    CUDA_CHECK_LAUNCH();
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the livelock did not happen\n");
  return 0;
}
