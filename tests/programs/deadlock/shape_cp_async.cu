// Fetches the flags by cp.async into shared memory in every round and looks there.
// answered: unchecked; the copies are weak and race with the flag by design
// nvcc: -arch=sm_90
#include "poll_shape.h"

namespace {

__global__ void Wait(const uint32_t* flags) {
  __shared__ uint32_t copy[4];
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(copy));
  do {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(flags)  // expect: waits here
                 : "memory");
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
  } while (*static_cast<volatile uint32_t*>(copy + 3) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 4, [](uint32_t* flags) { Wait<<<1, 1>>>(flags); });
}
