// Every lane polls a flag of its own, until all have come.
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__global__ void Wait(const uint32_t* flags) {
  while (!__all_sync(~0u, LoadAcquireSys(flags + threadIdx.x) != 0)) {  // expect: waits here
    __nanosleep(20);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 32, [](uint32_t* flags) { Wait<<<1, 32>>>(flags); });
}
