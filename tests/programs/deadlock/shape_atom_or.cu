// Polls by atom.or with no bits.
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__device__ uint32_t Fetch(uint32_t* flag) {
  uint32_t value;
  asm volatile("atom.acquire.sys.global.or.b32 %0, [%1], 0;" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__global__ void Wait(uint32_t* flags) {
  while (Fetch(flags) == 0) {  // expect: waits here
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 1, [](uint32_t* flags) { Wait<<<1, 1>>>(flags); });
}
