// 64-bit integers: multiplication low and high, division and remainder signed and unsigned, shifts
// by more than the width in PTX, __int128, counting bits, and conversions to narrower types.
#include "arrays.h"

namespace {

constexpr int kResults = 18;
using i64 = long long;
using u64 = unsigned long long;

// What both sides compute in C++; the shifts beyond the width have their own kernel code.
__host__ __device__ void Common(u64 a, u64 b, u64* r) {
  r[0] = a * b;
  r[1] = static_cast<u64>(static_cast<unsigned __int128>(a) * b >> 64);
  r[2] = static_cast<u64>(static_cast<__int128>(static_cast<i64>(a)) * static_cast<i64>(b) >> 64);
  r[3] = b ? a / b : 0;
  r[4] = b ? a % b : 0;
  const bool fine = b != 0 && !(a == 1ull << 63 && b == ~0ull);
  r[5] = fine ? static_cast<u64>(static_cast<i64>(a) / static_cast<i64>(b)) : 0;
  r[6] = fine ? static_cast<u64>(static_cast<i64>(a) % static_cast<i64>(b)) : 0;
  r[7] =
      static_cast<u64>(static_cast<int>(a)) + static_cast<short>(b) + static_cast<unsigned char>(a);
  r[8] = (a < b) | (static_cast<i64>(a) < static_cast<i64>(b)) << 1 | (a == b) << 2;
  r[9] = static_cast<u64>((static_cast<__int128>(a) << 64 | b) / 1000003 >> 5);
  r[10] = a % 1000 + b / 7;  // by constants: multiplications
  r[11] = a / (b % 100000 + 1);
}

__global__ void Compute(const ulonglong2* in, int count, u64* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const u64 a = in[i].x, b = in[i].y;
  u64* r = out + i * kResults;
  Common(a, b, r);
  const unsigned by = static_cast<unsigned>(b % 80);
  asm("shl.b64 %0, %1, %2;" : "=l"(r[12]) : "l"(a), "r"(by));
  asm("shr.u64 %0, %1, %2;" : "=l"(r[13]) : "l"(a), "r"(by));
  asm("shr.s64 %0, %1, %2;" : "=l"(r[14]) : "l"(a), "r"(by));
  r[15] = __popcll(a) | __clzll(b) << 8 | __ffsll(a) << 16;
  r[16] = __brevll(a);
  r[17] = __umul64hi(a, b) ^ __mul64hi(a, b);
}

}  // namespace

int main() {
  Random random(51);
  std::vector<u64> in;
  const u64 edges[] = {
      0, 1, 2, ~0ull, 1ull << 63, (1ull << 63) - 1, 1ull << 32, 0xffffffffull, 1000003, 64};
  for (const u64 a : edges) {
    for (const u64 b : edges) in.push_back(a), in.push_back(b);
  }
  for (int i = 0; i < 1000; ++i) {
    in.push_back(random.Next64() >> random.Next() % 64);
    in.push_back(random.Next64() >> random.Next() % 64);
  }
  const int count = static_cast<int>(in.size() / 2);
  std::vector<u64> expected(count * kResults);
  for (int i = 0; i < count; ++i) {
    const u64 a = in[2 * i], b = in[2 * i + 1];
    u64* r = &expected[i * kResults];
    Common(a, b, r);
    const unsigned by = static_cast<unsigned>(b % 80);
    r[12] = by < 64 ? a << by : 0;
    r[13] = by < 64 ? a >> by : 0;
    r[14] = static_cast<u64>(static_cast<i64>(a) >> (by < 63 ? by : 63));
    r[15] = static_cast<u64>(__builtin_popcountll(a) | (b ? __builtin_clzll(b) : 64) << 8 |
                             __builtin_ffsll(a) << 16);
    for (int bit = 0; bit < 64; ++bit) r[16] |= (a >> bit & 1) << (63 - bit);
    r[17] = r[1] ^ r[2];
  }
  u64* out = Unwritten<u64>(expected.size());
  Compute<<<(count + 63) / 64, 64>>>(reinterpret_cast<ulonglong2*>(ToDevice(in)), count, out);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::printf("PASS integers_64: %d pairs\n", count);
}
