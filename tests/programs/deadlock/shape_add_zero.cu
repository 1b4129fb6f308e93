// Polls by adding nothing (vLLM, TensorRT-LLM).
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__global__ void Wait(uint32_t* flags) {
  while (atomicAdd_system(flags, 0u) == 0) {  // expect: waits here
    __nanosleep(100);
  }
  __threadfence_system();
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 1, [](uint32_t* flags) { Wait<<<1, 32>>>(flags); });
}
