// __match_any_sync and __match_all_sync on 32-bit and 64-bit values, with full and partial masks,
// and the aggregation of atomics that they are used for.
#include "arrays.h"

namespace {

template <class T>
__global__ void Match(const T* values, int rounds, unsigned mask, unsigned* out) {
  const unsigned lane = threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    unsigned any = 0, all = 0;
    int equal = 0;
    if (mask >> lane & 1) {
      any = __match_any_sync(mask, values[round * 32 + lane]);
      all = __match_all_sync(mask, values[round * 32 + lane], &equal);
    }
    unsigned* row = out + (round * 32 + lane) * 3;
    row[0] = any;
    row[1] = all;
    row[2] = equal;
  }
}

// One atomic per distinct key of a warp; every lane gets its place in the key's sequence.
__global__ void Aggregate(const unsigned* keys, int count, unsigned* counters) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const unsigned peers = __match_any_sync(__activemask(), keys[i]);
    if (threadIdx.x % 32 == static_cast<unsigned>(__ffs(peers)) - 1) {
      atomicAdd(&counters[keys[i]], __popc(peers));
    }
  }
}

template <class T>
void Check(unsigned mask, T scale) {
  constexpr int kRounds = 20;
  Random random(mask);
  std::vector<T> values;
  for (int round = 0; round < kRounds; ++round) {
    for (int lane = 0; lane < 32; ++lane) {
      values.push_back(round % 5 == 0 ? scale : scale * (random.Next() % (round + 1)));
    }
  }
  std::vector<unsigned> expected;
  for (int round = 0; round < kRounds; ++round) {
    const T* row = values.data() + round * 32;
    bool equal = true;
    for (int lane = 0; lane < 32; ++lane) {
      if (mask >> lane & 1) equal = equal && row[lane] == row[__builtin_ctz(mask)];
    }
    for (int lane = 0; lane < 32; ++lane) {
      unsigned any = 0;
      for (int other = 0; other < 32; ++other) {
        if (mask >> other & 1 && row[other] == row[lane]) any |= 1u << other;
      }
      const bool member = mask >> lane & 1;
      expected.push_back(member ? any : 0);
      expected.push_back(member && equal ? mask : 0);
      expected.push_back(member && equal ? 1 : 0);
    }
  }
  unsigned* out = Unwritten<unsigned>(expected.size());
  Match<T><<<1, 32>>>(ToDevice(values), kRounds, mask, out);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
}

}  // namespace

int main() {
  for (const unsigned mask : {0xffffffffu, 0x0000ffffu, 0xa5a5a5a5u, 0x80000001u, 0x00000400u}) {
    Check<unsigned>(mask, 0x01000001u);
    Check<unsigned long long>(mask, 0x0100000100000000ull);
  }
  constexpr int kCount = 3000, kKeys = 17;
  Random random(7);
  std::vector<unsigned> keys, counters(kKeys, 0);
  for (int i = 0; i < kCount; ++i) {
    keys.push_back(random.Next() % kKeys);
    ++counters[keys.back()];
  }
  unsigned* device_counters = Zeroed<unsigned>(kKeys);
  Aggregate<<<4, 128>>>(ToDevice(keys), kCount, device_counters);
  REQUIRE_SAME(ToHost(device_counters, kKeys), counters);
  std::puts("PASS match");
}
