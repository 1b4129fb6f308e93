// 128-bit atomics of sm_90: exchange and compare-and-swap of 16 bytes, by atom.b128 in PTX. Many
// blocks add to a pair of 64-bit numbers that must never be seen half updated.
// nvcc: -arch=sm_90
#include "arrays.h"

namespace {

struct alignas(16) Pair {
  unsigned long long low, high;
};

__device__ Pair Cas(Pair* at, Pair expected, Pair wanted) {
  Pair old;
  asm volatile(
      "{ .reg .b128 e, w, o;\n\t"
      "mov.b128 e, {%3, %4};\n\t"
      "mov.b128 w, {%5, %6};\n\t"
      "atom.relaxed.gpu.global.cas.b128 o, [%2], e, w;\n\t"
      "mov.b128 {%0, %1}, o; }"
      : "=l"(old.low), "=l"(old.high)
      : "l"(at), "l"(expected.low), "l"(expected.high), "l"(wanted.low), "l"(wanted.high)
      : "memory");
  return old;
}

__device__ Pair Exchange(Pair* at, Pair wanted) {
  Pair old;
  asm volatile(
      "{ .reg .b128 w, o;\n\t"
      "mov.b128 w, {%3, %4};\n\t"
      "atom.relaxed.gpu.global.exch.b128 o, [%2], w;\n\t"
      "mov.b128 {%0, %1}, o; }"
      : "=l"(old.low), "=l"(old.high)
      : "l"(at), "l"(wanted.low), "l"(wanted.high)
      : "memory");
  return old;
}

// high is always ~low * 3: whoever sees another pair saw a torn one.
__global__ void Count(Pair* at, int rounds, unsigned* torn) {
  for (int round = 0; round < rounds; ++round) {
    Pair seen = Cas(at, {1, 1}, {1, 1});  // the pair is never (1, 1): a read
    while (true) {
      if (seen.high != ~seen.low * 3) atomicAdd(torn, 1);
      const Pair wanted = {seen.low + 1, ~(seen.low + 1) * 3};
      const Pair before = Cas(at, seen, wanted);
      if (before.low == seen.low && before.high == seen.high) break;
      seen = before;
    }
  }
}

__global__ void Swap(Pair* at, Pair* old) {
  const unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
  old[i] = Exchange(at, {i + 1, (i + 1) << 40});
}

}  // namespace

int main() {
  constexpr int kBlocks = 6, kThreads = 32, kRounds = 5, kCount = kBlocks * kThreads;
  const Pair start = {0, ~0ull * 3};
  Pair* at = Zeroed<Pair>(1);
  Upload(at, &start, 1);
  unsigned* torn = Zeroed<unsigned>(1);
  Count<<<kBlocks, kThreads>>>(at, kRounds, torn);
  REQUIRE(ToHost(torn, 1)[0] == 0, "%u torn pairs", Fetch(torn));
  const Pair end = Fetch(at);
  REQUIRE(end.low == kCount * kRounds && end.high == ~end.low * 3, "%llu, %llu", end.low, end.high);

  const Pair zero = {0, 0};
  Upload(at, &zero, 1);
  Pair* old = Unwritten<Pair>(kCount);
  Swap<<<kBlocks, kThreads>>>(at, old);
  std::vector<Pair> pairs = ToHost(old, kCount);
  pairs.push_back(Fetch(at));
  std::vector<bool> seen(kCount + 1, false);
  for (const Pair& pair : pairs) {
    REQUIRE(pair.low <= kCount && pair.high == pair.low << 40 && !seen[pair.low],
            "%llu, %llu: torn or twice", pair.low, pair.high);
    seen[pair.low] = true;
  }
  std::puts("PASS wide_128");
}
