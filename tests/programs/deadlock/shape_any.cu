// Every lane polls a flag of its own, until no lane of the warp misses any (NVSHMEM, FlashInfer).
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__global__ void Wait(const uint32_t* flags) {
  bool missing;
  do {
    missing = LoadAcquireSys(flags + threadIdx.x) == 0;  // expect: waits here
  } while (__any_sync(~0u, missing));
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 32, [](uint32_t* flags) { Wait<<<1, 32>>>(flags); });
}
