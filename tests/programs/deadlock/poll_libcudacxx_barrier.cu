// Deadlocks in the poll of libcu++'s barrier of system scope: it is made for three arrivals a
// phase, and two devices arrive.
#include <cuda/barrier>

#include "check.h"

namespace {

using Barrier = cuda::barrier<cuda::thread_scope_system>;

__global__ void Make(Barrier* barrier) { new (barrier) Barrier(3); }

__global__ void Meet(Barrier* barrier, int* output) {
  barrier->arrive_and_wait();  // expect: waits here
  *output = 1;
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(1, 0);
  void* memory = ZeroedOn<uint64_t>(0, 16);
  auto* barrier = static_cast<Barrier*>(memory);
  int* outputs[2] = {ZeroedOn<int>(0), ZeroedOn<int>(1)};
  CUDA_CHECK(cudaSetDevice(0));
  Make<<<1, 1>>>(barrier);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int device = 0; device < 2; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    Meet<<<1, 1>>>(barrier, outputs[device]);
    CUDA_CHECK_LAUNCH();
  }
  for (int device = 0; device < 2; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  std::printf("the deadlock did not happen\n");
  return 0;
}
