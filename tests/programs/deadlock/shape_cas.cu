// Polls by a compare-and-swap that takes the flag down again.
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__global__ void Wait(uint32_t* flags) {
  while (atomicCAS_system(flags, 1u, 0u) != 1) {  // expect: waits here
  }
  __threadfence_system();
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 1, [](uint32_t* flags) { Wait<<<1, 1>>>(flags); });
}
