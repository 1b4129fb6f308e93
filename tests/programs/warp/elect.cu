// elect.sync names exactly one lane of the mask and tells all of them which; and the leader pattern
// by __ffs(__activemask()) in code that only some lanes execute.
// nvcc: -arch=sm_90
#include "arrays.h"

namespace {

__device__ bool Elect(unsigned mask, unsigned* leader) {
  unsigned elected;
  asm volatile(
      "{ .reg .pred p;\n\t"
      "elect.sync %0|p, %2;\n\t"
      "selp.u32 %1, 1, 0, p; }"
      : "=r"(*leader), "=r"(elected)
      : "r"(mask));
  return elected;
}

__global__ void Leaders(const unsigned* masks, int count, unsigned* winners, unsigned* leaders) {
  const unsigned lane = threadIdx.x;
  for (int i = 0; i < count; ++i) {
    if (masks[i] >> lane & 1) {
      unsigned leader = ~0u;
      if (Elect(masks[i], &leader)) atomicOr(&winners[i], 1u << lane);
      leaders[i * 32 + lane] = leader;
    }
    __syncwarp();
  }
}

// Lanes whose value is odd append it with one atomic for all that arrive together.
__global__ void Append(const unsigned* values, int count, unsigned* end, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count || values[i] % 2 == 0) return;
  const unsigned active = __activemask();
  const int leader = __ffs(active) - 1;
  const unsigned lane = threadIdx.x % 32;
  unsigned base = 0;
  if (lane == static_cast<unsigned>(leader)) base = atomicAdd(end, __popc(active));
  base = __shfl_sync(active, base, leader);
  out[base + __popc(active & ((1u << lane) - 1))] = values[i];
}

}  // namespace

int main() {
  std::vector<unsigned> masks = {0xffffffffu, 1, 0x80000000u, 0xf0f0f0f0u, 0x00010000u};
  Random random(11);
  while (masks.size() < 20) masks.push_back(random.Next() | 0x100);
  const size_t count = masks.size();
  unsigned* winners = Zeroed<unsigned>(count);
  unsigned* leaders = Zeroed<unsigned>(count * 32);
  Leaders<<<1, 32>>>(ToDevice(masks), static_cast<int>(count), winners, leaders);
  const std::vector<unsigned> won = ToHost(winners, count), told = ToHost(leaders, count * 32);
  for (size_t i = 0; i < count; ++i) {
    REQUIRE(__builtin_popcount(won[i]) == 1 && (won[i] & masks[i]), "mask 0x%x elected 0x%x",
            masks[i], won[i]);
    for (int lane = 0; lane < 32; ++lane) {
      const unsigned expected = masks[i] >> lane & 1 ? __builtin_ctz(won[i]) : 0;
      REQUIRE(told[i * 32 + lane] == expected, "mask 0x%x, lane %d was told %u, expected %u",
              masks[i], lane, told[i * 32 + lane], expected);
    }
  }

  constexpr int kCount = 777;
  std::vector<unsigned> values;
  size_t odd = 0;
  uint64_t sum = 0;
  for (int i = 0; i < kCount; ++i) {
    values.push_back(random.Next());
    if (values.back() % 2) ++odd, sum += values.back();
  }
  unsigned* end = Zeroed<unsigned>(1);
  unsigned* out = Zeroed<unsigned>(kCount);
  Append<<<7, 128>>>(ToDevice(values), kCount, end, out);
  REQUIRE(ToHost(end, 1)[0] == odd, "%u were appended, expected %zu", Fetch(end), odd);
  for (unsigned value : ToHost(out, kCount)) sum -= value;
  REQUIRE(sum == 0, "what was appended is not what was odd");
  std::puts("PASS elect");
}
