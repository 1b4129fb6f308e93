// __reduce_{add,min,max,and,or,xor}_sync, signed and unsigned, over full and partial masks, from
// straight code and from both sides of a branch.
// nvcc: -arch=sm_90
#include "arrays.h"

namespace {

__global__ void Reduce(const unsigned* values, int rounds, unsigned mask, unsigned* out) {
  const unsigned lane = threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    const unsigned value = values[round * 32 + lane];
    unsigned* row = out + (round * 32 + lane) * 8;
    const unsigned side = mask >> lane & 1 ? mask : ~mask;
    if (side == mask) {
      row[0] = __reduce_add_sync(side, value);
      row[1] = __reduce_add_sync(side, static_cast<int>(value));
      row[2] = __reduce_min_sync(side, value);
      row[3] = __reduce_min_sync(side, static_cast<int>(value));
    } else {
      row[0] = __reduce_add_sync(side, value);
      row[1] = __reduce_add_sync(side, static_cast<int>(value));
      row[2] = __reduce_min_sync(side, value);
      row[3] = __reduce_min_sync(side, static_cast<int>(value));
    }
    __syncwarp();
    row[4] = __reduce_max_sync(0xffffffffu, value);
    row[5] = __reduce_max_sync(0xffffffffu, static_cast<int>(value));
    row[6] = __reduce_and_sync(0xffffffffu, value) ^ __reduce_or_sync(0xffffffffu, value);
    row[7] = __reduce_xor_sync(0xffffffffu, value);
  }
}

}  // namespace

int main() {
  constexpr int kRounds = 12;
  Random random(3);
  std::vector<unsigned> values;
  for (int i = 0; i < kRounds * 32; ++i) {
    values.push_back(i < 32 ? 0 : i < 64 ? 0xffffffffu : i < 96 ? i : random.Next() | (i / 32));
  }
  for (const unsigned mask : {0xffffffffu, 0x55555555u, 0x0000ffffu, 0x00000001u, 0x7fffffffu}) {
    std::vector<unsigned> expected;
    for (int round = 0; round < kRounds; ++round) {
      const unsigned* row = values.data() + round * 32;
      for (int lane = 0; lane < 32; ++lane) {
        const unsigned side = mask >> lane & 1 ? mask : ~mask;
        unsigned sum = 0, low = ~0u, high = 0, all = ~0u, some = 0, parity = 0;
        int signed_low = 0x7fffffff, signed_high = -0x7fffffff - 1;
        for (int other = 0; other < 32; ++other) {
          const unsigned value = row[other];
          if (side >> other & 1) {
            sum += value;
            if (value < low) low = value;
            if (static_cast<int>(value) < signed_low) signed_low = value;
          }
          if (value > high) high = value;
          if (static_cast<int>(value) > signed_high) signed_high = value;
          all &= value;
          some |= value;
          parity ^= value;
        }
        expected.insert(expected.end(), {sum, sum, low, static_cast<unsigned>(signed_low), high,
                                         static_cast<unsigned>(signed_high), all ^ some, parity});
      }
    }
    unsigned* out = Unwritten<unsigned>(expected.size());
    Reduce<<<1, 32>>>(ToDevice(values), kRounds, mask, out);
    REQUIRE_SAME(ToHost(out, expected.size()), expected);
  }
  std::puts("PASS redux");
}
