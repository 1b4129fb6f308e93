// Every lane polls a flag of its own and counts who is ready by a ballot.
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__global__ void Wait(const uint32_t* flags) {
  int ready = 0;
  while (ready < 32) {
    ready =
        __popc(__ballot_sync(~0u, LoadAcquireSys(flags + threadIdx.x) == 1));  // expect: waits here
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 32, [](uint32_t* flags) { Wait<<<1, 32>>>(flags); });
}
