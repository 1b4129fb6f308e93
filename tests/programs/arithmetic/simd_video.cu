// SIMD within a word: the __v intrinsics on two halves and four bytes, signed, unsigned, saturated,
// compared and summed, against loops over the elements.
#include "arrays.h"

namespace {

constexpr int kResults = 16;

__global__ void Compute(const uint2* in, int count, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned a = in[i].x, b = in[i].y;
  unsigned* r = out + i * kResults;
  r[0] = __vadd4(a, b), r[1] = __vsub2(a, b), r[2] = __vaddus4(a, b), r[3] = __vsubss2(a, b);
  r[4] = __vmaxs4(a, b), r[5] = __vminu2(a, b), r[6] = __vabsdiffu4(a, b), r[7] = __vsadu4(a, b);
  r[8] = __vcmpgts4(a, b), r[9] = __vseteq4(a, b), r[10] = __vavgu4(a, b), r[11] = __vabs2(a);
  r[12] = __vneg4(a), r[13] = __vaddss4(a, b), r[14] = __vhaddu2(a, b), r[15] = __vcmpltu2(a, b);
}

template <class T, class Function>
unsigned Each(unsigned a, unsigned b, Function function) {
  constexpr int kBits = sizeof(T) * 8;
  unsigned result = 0;
  for (int at = 0; at < 32; at += kBits) {
    const unsigned mask = (1u << kBits) - 1;
    const int x = static_cast<T>(a >> at & mask), y = static_cast<T>(b >> at & mask);
    result |= (static_cast<unsigned>(function(x, y)) & mask) << at;
  }
  return result;
}

int Clamp(int x, int low, int high) { return x < low ? low : x > high ? high : x; }

void Expect(unsigned a, unsigned b, unsigned* r) {
  using s8 = signed char;
  using u8 = unsigned char;
  using s16 = short;
  using u16 = unsigned short;
  r[0] = Each<u8>(a, b, [](int x, int y) { return x + y; });
  r[1] = Each<u16>(a, b, [](int x, int y) { return x - y; });
  r[2] = Each<u8>(a, b, [](int x, int y) { return Clamp(x + y, 0, 255); });
  r[3] = Each<s16>(a, b, [](int x, int y) { return Clamp(x - y, -32768, 32767); });
  r[4] = Each<s8>(a, b, [](int x, int y) { return x > y ? x : y; });
  r[5] = Each<u16>(a, b, [](int x, int y) { return x < y ? x : y; });
  r[6] = Each<u8>(a, b, [](int x, int y) { return x > y ? x - y : y - x; });
  r[7] = 0;
  for (int at = 0; at < 32; at += 8) {
    const int difference = static_cast<int>(a >> at & 255) - static_cast<int>(b >> at & 255);
    r[7] += difference < 0 ? -difference : difference;
  }
  r[8] = Each<s8>(a, b, [](int x, int y) { return x > y ? 255 : 0; });
  r[9] = Each<u8>(a, b, [](int x, int y) { return x == y; });
  r[10] = Each<u8>(a, b, [](int x, int y) { return (x + y + 1) / 2; });
  r[11] = Each<s16>(a, b, [](int x, int) { return x < 0 ? -x : x; });
  r[12] = Each<s8>(a, b, [](int x, int) { return -x; });
  r[13] = Each<s8>(a, b, [](int x, int y) { return Clamp(x + y, -128, 127); });
  r[14] = Each<u16>(a, b, [](int x, int y) { return (x + y) / 2; });
  r[15] = Each<u16>(a, b, [](int x, int y) { return x < y ? 0xffff : 0; });
}

}  // namespace

int main() {
  Random random(71);
  std::vector<unsigned> in = {0,           0, ~0u,         ~0u,         0x80808080u, 0x7f7f7f7fu,
                              0x80008000u, 1, 0x7fff8000u, 0x80007fffu, 0x01020304u, 0x01ff0305u};
  for (int i = 0; i < 2000; ++i) in.push_back(random.Next());
  const int count = static_cast<int>(in.size() / 2);
  std::vector<unsigned> expected(count * kResults);
  for (int i = 0; i < count; ++i) Expect(in[2 * i], in[2 * i + 1], &expected[i * kResults]);
  unsigned* out = Unwritten<unsigned>(expected.size());
  Compute<<<(count + 63) / 64, 64>>>(reinterpret_cast<uint2*>(ToDevice(in)), count, out);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::printf("PASS simd_video: %d pairs\n", count);
}
