// Deadlocks in the poll of libcu++'s atomic wait: it looks, backs off for longer and longer, and
// looks again, until the value is another one. Nobody changes it.
#include <cuda/atomic>

#include "check.h"

namespace {

__global__ void Wait(uint32_t* word, int* output) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system> turn(*word);
  turn.wait(0, cuda::memory_order_acquire);  // expect: waits here
  *output = 1;
}

}  // namespace

int main() {
  RequireDevices(1);
  uint32_t* word = ZeroedOn<uint32_t>(0);
  int* output = ZeroedOn<int>(0);
  Wait<<<1, 1>>>(word, output);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
