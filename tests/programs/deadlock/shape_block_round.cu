// One thread polls and tells its block in shared memory, with two barriers in every round.
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__global__ void Wait(const uint32_t* flags) {
  __shared__ uint32_t seen;
  do {
    __syncthreads();
    if (threadIdx.x == 0) seen = LoadAcquireSys(flags);  // expect: waits here
    __syncthreads();
  } while (seen == 0);
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 1, [](uint32_t* flags) { Wait<<<2, 128>>>(flags); });
}
