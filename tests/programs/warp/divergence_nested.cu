// Branches inside branches: every lane takes its own way through five levels of conditions, some of
// them with nothing on one side, and all lanes meet again for a vote after each level.
#include "arrays.h"

namespace {

__host__ __device__ unsigned Way(unsigned lane, unsigned value) {
  unsigned result = value;
  if (lane & 1) {
    result = result * 3 + 1;
    if (lane & 2) {
      result ^= 0x55u;
      if (lane & 4) {
        result += lane;
      } else if (lane & 8) {
        result -= 7;
        if (lane & 16) result <<= 1;
      } else {
        result = ~result;
      }
    }
    result += 1000;
  } else {
    if (lane % 3 == 0) {
      result /= 2;
    } else {
      if (lane % 3 == 1) {
        result *= 5;
      } else {
        if (lane > 20) return result + 77;
      }
      result += 3;
    }
  }
  return result;
}

__global__ void Nested(unsigned* values, unsigned* ballots, int rounds) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned lane = threadIdx.x % 32;
  unsigned value = thread;
  for (int round = 0; round < rounds; ++round) {
    value = Way((lane + round) % 32, value);
    // All 32 lanes must be here again, whatever they did before.
    const unsigned odd = __ballot_sync(0xffffffffu, value & 1);
    if (lane == 0) ballots[(thread / 32) * rounds + round] = odd;
  }
  values[thread] = value;
}

}  // namespace

int main() {
  constexpr int kBlocks = 3, kThreads = 96, kRounds = 40, kCount = kBlocks * kThreads;
  std::vector<unsigned> values(kCount), ballots(kCount / 32 * kRounds, 0);
  for (unsigned thread = 0; thread < kCount; ++thread) {
    unsigned value = thread;
    for (int round = 0; round < kRounds; ++round) {
      value = Way((thread % 32 + round) % 32, value);
      ballots[(thread / 32) * kRounds + round] |= (value & 1) << (thread % 32);
    }
    values[thread] = value;
  }
  unsigned* device_values = Unwritten<unsigned>(kCount);
  unsigned* device_ballots = Unwritten<unsigned>(ballots.size());
  Nested<<<kBlocks, kThreads>>>(device_values, device_ballots, kRounds);
  REQUIRE_SAME(ToHost(device_values, kCount), values);
  REQUIRE_SAME(ToHost(device_ballots, ballots.size()), ballots);
  std::printf("PASS divergence_nested: %d threads, %d rounds\n", kCount, kRounds);
}
