// Fetches the flags by a bulk copy in every round, waits for its mbarrier and looks at the copy.
// answered: unchecked; the copies are weak and race with the flag by design
// nvcc: -arch=sm_90
#include "poll_shape.h"

namespace {

__global__ void Wait(const uint32_t* flags) {
  __shared__ alignas(16) uint32_t copy[4];
  __shared__ uint64_t bar;
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(copy));
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(&bar));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.proxy.async;" ::"r"(at) : "memory");
  uint32_t parity = 0, seen = 0;
  while (seen == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(at) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];" ::
            "r"(to),
        "l"(flags), "r"(at)  // expect: waits here
        : "memory");
    uint32_t done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, "
          "0, p; }"
          : "=r"(done)
          : "r"(at), "r"(parity)
          : "memory");
    }
    seen = *static_cast<volatile uint32_t*>(copy + 3);
    parity ^= 1;
    asm volatile("fence.proxy.async;" ::: "memory");
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 4, [](uint32_t* flags) { Wait<<<1, 1>>>(flags); });
}
