// __all_sync, __any_sync, __ballot_sync and vote.uni over full and partial masks, in
// straight code and from the two sides of a branch.
#include "arrays.h"

namespace {

__device__ bool Uniform(unsigned mask, bool predicate) {
  int equal;
  asm volatile(
      "{ .reg .pred p, q;\n\t"
      "setp.ne.u32 p, %1, 0;\n\t"
      "vote.sync.uni.pred q, p, %2;\n\t"
      "selp.u32 %0, 1, 0, q; }"
      : "=r"(equal)
      : "r"(static_cast<unsigned>(predicate)), "r"(mask));
  return equal;
}

__global__ void Votes(const unsigned* patterns, int count, unsigned* out) {
  const unsigned lane = threadIdx.x, bit = 1u << lane;
  for (int i = 0; i < count; ++i) {
    const bool mine = patterns[i] & bit;
    const unsigned ballot = __ballot_sync(0xffffffffu, mine);
    const unsigned flags = (__all_sync(0xffffffffu, mine) ? 1 : 0) |
                           (__any_sync(0xffffffffu, mine) ? 2 : 0) |
                           (Uniform(0xffffffffu, mine) ? 4 : 0);
    unsigned half, half_flags;
    if (lane < 10) {
      half = __ballot_sync(0x3ffu, mine);
      half_flags =
          __all_sync(0x3ffu, mine) | (__any_sync(0x3ffu, mine) << 1) | (Uniform(0x3ffu, mine) << 2);
    } else {
      half = __ballot_sync(~0x3ffu, mine);
      half_flags = __all_sync(~0x3ffu, mine) | (__any_sync(~0x3ffu, mine) << 1) |
                   (Uniform(~0x3ffu, mine) << 2);
    }
    __syncwarp();
    unsigned* row = out + (i * 32 + lane) * 4;
    row[0] = ballot;
    row[1] = flags;
    row[2] = half;
    row[3] = half_flags;
  }
}

unsigned Flags(unsigned pattern, unsigned mask) {
  const unsigned set = pattern & mask;
  return (set == mask ? 1 : 0) | (set != 0 ? 2 : 0) | (set == mask || set == 0 ? 4 : 0);
}

}  // namespace

int main() {
  std::vector<unsigned> patterns = {0, 0xffffffffu, 1, 0x80000000u, 0x3ff, ~0x3ffu, 0x400, 0x200};
  Random random(1);
  while (patterns.size() < 40) patterns.push_back(random.Next());
  std::vector<unsigned> expected;
  for (unsigned pattern : patterns) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned side = lane < 10 ? 0x3ffu : ~0x3ffu;
      expected.insert(expected.end(),
                      {pattern, Flags(pattern, 0xffffffffu), pattern & side, Flags(pattern, side)});
    }
  }
  unsigned* out = Unwritten<unsigned>(expected.size());
  Votes<<<1, 32>>>(ToDevice(patterns), static_cast<int>(patterns.size()), out);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::printf("PASS votes: %zu patterns\n", patterns.size());
}
