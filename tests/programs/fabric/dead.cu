// A link dies while a kernel polls over it, while a kernel stores over it, before a copy, and on a
// way that nobody uses: only those who need the link fail, with the error that CUDA has for it, and
// other devices go on.
//
// run polling: --fault link:gpu1-nvswitch=dead@40us | polling
// run storing: --fault gpu:gpu1=dead@40us | storing
// run copying: --fault link:gpu1-nvswitch=dead | copying
// run unused: --fault link:gpu5-nvswitch=dead --fault nic:nic0=dead | unused
// finds: api_error
// faults: links that the kernels use are dead
#include <cstring>

#include "check.h"

__global__ void Poll(volatile int* flag) {
  while (*flag == 0) {
  }
}

__global__ void Store(int* to) {
  for (int i = 0;; ++i) {
    to[threadIdx.x] = i;
    __threadfence_system();
  }
}

__global__ void Add(int* own) { atomicAdd(own, 1); }

int main(int argc, char** argv) {
  RequireDevices(3);
  const char* what = argc > 1 ? argv[1] : "unused";
  EnablePeer(0, 1);
  EnablePeer(0, 2);
  int* far = ZeroedOn<int>(1, 1024);
  int* third = ZeroedOn<int>(2, 1024);
  int* own = ZeroedOn<int>(0, 1024);
  const bool unused = std::strcmp(what, "unused") == 0;
  if (std::strcmp(what, "polling") == 0) Poll<<<1, 1>>>(far);
  if (std::strcmp(what, "storing") == 0) Store<<<1, 32>>>(far);
  if (unused) {
    CUDA_CHECK(cudaMemcpyAsync(far, own, 4096, cudaMemcpyDeviceToDevice));
    CUDA_CHECK(cudaDeviceSynchronize());
    return 0;
  }
  if (std::strcmp(what, "copying") == 0) {
    CUDA_CHECK(cudaMemcpyAsync(far, own, 4096, cudaMemcpyDeviceToDevice));
  } else {
    CUDA_CHECK_LAUNCH();
  }
  CUDA_EXPECT(cudaErrorNvlinkUncorrectable, cudaDeviceSynchronize());
  // The error stays with the context that met it; a third device knows nothing of it.
  CUDA_EXPECT(cudaErrorNvlinkUncorrectable, cudaFree(own));
  (void)cudaGetLastError();
  CUDA_CHECK(cudaSetDevice(2));
  Add<<<1, 32>>>(third);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(Fetch(third) == 32, "the third device does not compute");
  return 0;
}
