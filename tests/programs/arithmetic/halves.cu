// half and half2: arithmetic in both lanes against exact results rounded once, comparisons with
// NaN, conversions to and from integers and floats in all roundings, packing, fma with relu and
// saturation, and the math functions that the header makes of approximations.
#include <cuda_fp16.h>
#include <cmath>
#include <cstring>

#include "arrays.h"

namespace {

constexpr int kResults = 16;

__device__ unsigned short Bits(__half h) { return __half_as_ushort(h); }

__global__ void Compute(const __half2* in, int count, unsigned short* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const __half a = __low2half(in[i]), b = __high2half(in[i]);
  unsigned short* r = out + i * kResults;
  r[0] = Bits(a + b);
  r[1] = Bits(a - b);
  r[2] = Bits(a * b);
  r[3] = Bits(__hfma(a, b, a));
  const __half2 swapped = __lowhigh2highlow(in[i]);
  r[4] = Bits(__low2half(__hmul2(in[i], swapped)));
  r[5] = Bits(__high2half(__hsub2(in[i], swapped)));
  r[6] = Bits(__hadd_sat(a, b));
  r[7] = Bits(__hfma_relu(a, b, b));
  r[8] = __heq(a, b) | __hlt(a, b) << 1 | __hle(a, b) << 2 | __hneu(a, b) << 3 | __hisnan(a) << 4 |
         (__hisinf(b) != 0) << 5;
  r[9] = Bits(__hmin(a, b));
  r[10] = Bits(__hmax(a, b));
  r[11] = Bits(__hneg(__habs(b)));
  r[12] = static_cast<unsigned short>(__half2short_rz(a));
  r[13] = Bits(__float2half_ru(__half2float(a) * 1.0009f));
  r[14] = Bits(__double2half(static_cast<double>(__half2float(b)) / 3));
  r[15] = Bits(htrunc(a) + hfloor(b));
}

// Rounds a double, which is exact here, to half: nearest even, or up.
unsigned short Round(double x, bool up = false) {
  const unsigned short sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0x7fff;
  const double m = std::fabs(x);
  if (std::isinf(x)) return sign | 0x7c00;
  int exponent = m == 0 ? -14 : std::ilogb(m);
  if (exponent < -14) exponent = -14;
  const double unit = std::ldexp(1.0, exponent - 10);
  double steps = m / unit;
  steps = up ? (sign ? std::floor(steps) : std::ceil(steps)) : std::nearbyint(steps);
  const double rounded = steps * unit;
  if (rounded > 65504) return sign | (up && sign ? 0x7bff : 0x7c00);
  if (rounded < std::ldexp(1.0, -14))
    return sign | static_cast<unsigned short>(rounded / std::ldexp(1.0, -24));
  const int e = std::ilogb(rounded);
  return sign | static_cast<unsigned short>(
                    (e + 15) << 10 | (static_cast<int>(std::ldexp(rounded, 10 - e)) & 0x3ff));
}

double Value(unsigned short bits) {
  const int e = bits >> 10 & 31, m = bits & 0x3ff;
  double value = e == 31  ? (m ? NAN : INFINITY)
                 : e == 0 ? std::ldexp(m, -24)
                          : std::ldexp(m + 1024, e - 25);
  return bits & 0x8000 ? -value : value;
}

void Expect(unsigned short ab, unsigned short bb, unsigned short* r) {
  const double a = Value(ab), b = Value(bb);
  r[0] = Round(a + b);
  r[1] = Round(a - b);
  r[2] = Round(a * b);
  // Exact in long double (64 bits): products have 22, sums up to 42 + 22 bits of range here.
  r[3] = Round(static_cast<double>(std::fma(a, b, a)));
  r[4] = Round(a * b);
  r[5] = Round(b - a);
  const double sum = a + b;
  r[6] = std::isnan(sum) || sum < 0 || sum == 0 ? 0 : Round(std::fmin(Value(Round(sum)), 1.0));
  const double relu = std::fma(a, b, b);
  r[7] = std::isnan(relu) ? 0x7fff : relu <= 0 ? 0 : Round(relu);
  // __hneu: not equal or unordered.
  r[8] = (a == b) | (a < b) << 1 | (a <= b) << 2 | !(a == b) << 3 | std::isnan(a) << 4 |
         std::isinf(b) << 5;
  const bool a_low = a < b || (a == b && std::signbit(a));
  r[9] = std::isnan(a) && std::isnan(b) ? 0x7fff
         : std::isnan(a)                ? bb
         : std::isnan(b)                ? ab
         : a_low                        ? ab
                                        : bb;
  r[10] = std::isnan(a) && std::isnan(b) ? 0x7fff
          : std::isnan(a)                ? bb
          : std::isnan(b)                ? ab
          : a_low                        ? bb
                                         : ab;
  r[11] = bb | 0x8000;
  r[12] = static_cast<unsigned short>(
      std::isnan(a) ? 0 : static_cast<short>(std::fmax(-32768, std::fmin(32767, std::trunc(a)))));
  r[13] = Round(static_cast<float>(a) * 1.0009f, true);
  r[14] = Round(b / 3);
  r[15] = Round(std::trunc(a) + std::floor(b));
}

bool Same(int k, unsigned short got, unsigned short expected) {
  if (k == 8 || k == 12) return got == expected;
  if (std::isnan(Value(expected))) return std::isnan(Value(got));
  return got == expected;
}

}  // namespace

int main() {
  const unsigned short edges[] = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x3c00, 0xbc00,
                                  0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7fff, 0x3555, 0x6401};
  std::vector<unsigned> in;
  for (const unsigned short a : edges) {
    for (const unsigned short b : edges) in.push_back(a | static_cast<unsigned>(b) << 16);
  }
  Random random(57);
  for (int i = 0; i < 2000; ++i) {
    // Within 2^20 of each other, so that doubles hold sums and products exactly.
    in.push_back(random.Next() & 0xbfffbfffu);
  }
  const int count = static_cast<int>(in.size());
  unsigned short* out = Unwritten<unsigned short>(count * kResults);
  Compute<<<(count + 63) / 64, 64>>>(reinterpret_cast<__half2*>(ToDevice(in)), count, out);
  const std::vector<unsigned short> got = ToHost(out, count * kResults);
  for (int i = 0; i < count; ++i) {
    unsigned short expected[kResults];
    const unsigned short a = in[i] & 0xffff, b = in[i] >> 16;
    Expect(a, b, expected);
    for (int k = 0; k < kResults; ++k) {
      REQUIRE(Same(k, got[i * kResults + k], expected[k]),
              "result %d of 0x%x (%g), 0x%x (%g): 0x%x, expected 0x%x", k, a, Value(a), b, Value(b),
              got[i * kResults + k], expected[k]);
    }
  }
  std::printf("PASS halves: %d pairs\n", count);
}
