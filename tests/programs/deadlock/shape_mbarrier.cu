// A producer polls and passes what it saw to a consumer by an mbarrier phase in every round.
// answered: the same ends when the flag comes
// nvcc: -arch=sm_90
#include "poll_shape.h"

namespace {

__device__ void Arrive(uint64_t* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(bar)))
               : "memory");
}

__device__ void Await(uint64_t* bar, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(bar))), "r"(parity)
        : "memory");
  }
}

__global__ void Wait(const uint32_t* flags) {
  __shared__ uint64_t full, empty;
  __shared__ uint32_t seen;
  if (threadIdx.x == 0) {
    for (uint64_t* bar : {&full, &empty}) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(
                       static_cast<uint32_t>(__cvta_generic_to_shared(bar)))
                   : "memory");
    }
  }
  __syncthreads();
  uint32_t parity = 0, command = 0;
  while (command == 0) {
    if (threadIdx.x == 0) {
      command = LoadAcquireSys(flags);  // expect: waits here
      seen = command;
      Arrive(&full);
      Await(&empty, parity);
    } else if (threadIdx.x == 32) {
      Await(&full, parity);
      command = seen;
      Arrive(&empty);
    } else {
      break;
    }
    parity ^= 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 1, [](uint32_t* flags) { Wait<<<1, 64>>>(flags); });
}
