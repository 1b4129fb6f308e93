// Polls through a function that is not inlined.
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__device__ __noinline__ uint32_t Fetch(const uint32_t* flag) {
  return LoadAcquireSys(flag);  // expect: waits here
}

__global__ void Wait(const uint32_t* flags) {
  while (Fetch(flags) == 0) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 1, [](uint32_t* flags) { Wait<<<1, 32>>>(flags); });
}
