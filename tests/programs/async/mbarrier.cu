// mbarrier in PTX: init, arrive with counts and tokens, phases and parity, test_wait and try_wait,
// arrive_drop, pending counts, and a ring of full and empty barriers between warps.
// nvcc: -arch=sm_90
#include "arrays.h"

namespace {

using u64 = unsigned long long;

__device__ unsigned Shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ void Init(u64* barrier, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(Shared(barrier)), "r"(count) : "memory");
}
__device__ u64 Arrive(u64* barrier, unsigned count = 1) {
  u64 token;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1], %2;"
               : "=l"(token)
               : "r"(Shared(barrier)), "r"(count)
               : "memory");
  return token;
}
__device__ u64 Drop(u64* barrier) {
  u64 token;
  asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];"
               : "=l"(token)
               : "r"(Shared(barrier))
               : "memory");
  return token;
}
__device__ bool Test(u64* barrier, u64 token) {
  unsigned done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(Shared(barrier)), "l"(token)
               : "memory");
  return done;
}
__device__ void WaitParity(u64* barrier, unsigned parity) {
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(Shared(barrier)), "r"(parity)
        : "memory");
  }
}
__device__ unsigned Pending(u64 token) {
  unsigned count;
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(token));
  return count;
}

__global__ void OneThread(unsigned* out) {
  __shared__ u64 barrier;
  Init(&barrier, 5);
  const u64 first = Arrive(&barrier, 2);
  out[0] = Pending(first);
  out[1] = Test(&barrier, first);
  const u64 second = Arrive(&barrier);
  out[2] = Pending(second);
  Drop(&barrier);
  const u64 last = Arrive(&barrier);
  out[3] = Pending(last);  // pending before this arrival
  out[4] = Test(&barrier, first) && Test(&barrier, last);
  // One participant left for good: four make the next phase.
  const u64 next = Arrive(&barrier, 3);
  out[5] = Pending(next);
  out[6] = Test(&barrier, next);
  Arrive(&barrier);
  out[7] = Test(&barrier, next);
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(Shared(&barrier)) : "memory");
}

// Warp 0 produces, warps 1 and 2 consume, through four slots.
__global__ void RingOfSlots(const int* in, int rounds, int* out) {
  constexpr int kSlots = 4;
  __shared__ u64 full[kSlots], empty[kSlots];
  __shared__ int slots[kSlots][32];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kSlots; ++i) Init(&full[i], 32), Init(&empty[i], 64);
  }
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int round = 0; round < rounds; ++round) {
    const int slot = round % kSlots, parity = round / kSlots % 2;
    if (warp == 0) {
      WaitParity(&empty[slot], parity ^ 1);  // the phase before the first counts as complete
      slots[slot][lane] = in[round * 32 + lane];
      Arrive(&full[slot]);
    } else {
      WaitParity(&full[slot], parity);
      out[(round * 2 + warp - 1) * 32 + lane] = slots[slot][warp == 1 ? lane : 31 - lane];
      Arrive(&empty[slot]);
    }
  }
}

}  // namespace

int main() {
  unsigned* out = Unwritten<unsigned>(8);
  OneThread<<<1, 1>>>(out);
  const std::vector<unsigned> expected = {5, 0, 3, 1, 1, 4, 0, 1};
  REQUIRE_SAME(ToHost(out, 8), expected);

  constexpr int kRounds = 23;
  Random random(103);
  std::vector<int> in, passed;
  for (int i = 0; i < kRounds * 32; ++i) in.push_back(static_cast<int>(random.Next()));
  for (int round = 0; round < kRounds; ++round) {
    for (int lane = 0; lane < 32; ++lane) passed.push_back(in[round * 32 + lane]);
    for (int lane = 0; lane < 32; ++lane) passed.push_back(in[round * 32 + 31 - lane]);
  }
  int* received = Unwritten<int>(passed.size());
  RingOfSlots<<<1, 96>>>(ToDevice(in), kRounds, received);
  REQUIRE_SAME(ToHost(received, passed.size()), passed);
  std::puts("PASS mbarrier");
}
