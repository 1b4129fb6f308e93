// Waits by cuda::atomic_ref::wait, whose loop backs off by itself.
// answered: the same ends when the flag comes
#include <cuda/atomic>

#include "poll_shape.h"

namespace {

__global__ void Wait(uint32_t* flags) {
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system>(*flags).wait(0);  // expect: waits here
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 1, [](uint32_t* flags) { Wait<<<1, 1>>>(flags); });
}
