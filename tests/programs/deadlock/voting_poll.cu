// Deadlocks: the lanes of a warp poll a word each and vote whether all have come, as protocols with
// flags inside their data do. One of the words never comes.
#include "check.h"
#include "flags.h"

namespace {

__global__ void Receive(const uint32_t* flags) {
  uint32_t seen = 0;
  do {
    seen = LoadAcquireSys(flags + threadIdx.x);  // expect: waits here
  } while (__any_sync(0xffffffffu, threadIdx.x % 8 == 7 && seen == 0));
}

__global__ void Send(uint32_t* flags) {
  if (threadIdx.x != 31) StoreReleaseSys(flags + threadIdx.x, 1);
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(0, 1);
  EnablePeer(1, 0);
  uint32_t* flags = ZeroedOn<uint32_t>(0, 32);
  CUDA_CHECK(cudaSetDevice(0));
  Receive<<<1, 32>>>(flags);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaSetDevice(1));
  Send<<<1, 32>>>(flags);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
