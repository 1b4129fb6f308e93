// bfloat16 and its pairs: arithmetic rounded once, fma, comparisons, conversions from float in all
// roundings and to integers, minimum and maximum with NaN.
// nvcc: -arch=sm_90
#include <cuda_bf16.h>
#include <cmath>
#include <cstring>

#include "arrays.h"

namespace {

constexpr int kResults = 12;

__device__ unsigned short Bits(__nv_bfloat16 b) { return __bfloat16_as_ushort(b); }

__global__ void Compute(const unsigned* in, const float* floats, int count, unsigned short* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const __nv_bfloat16 a = __ushort_as_bfloat16(in[i] & 0xffff),
                      b = __ushort_as_bfloat16(in[i] >> 16);
  const __nv_bfloat162 ab = __halves2bfloat162(a, b), ba = __lowhigh2highlow(ab);
  unsigned short* r = out + i * kResults;
  r[0] = Bits(a + b);
  r[1] = Bits(a * b);
  r[2] = Bits(__hfma(a, b, b));
  r[3] = Bits(__low2bfloat16(__hsub2(ab, ba)));
  r[4] = Bits(__high2bfloat16(__hfma2(ab, ba, ab)));
  r[5] = Bits(__hmax(a, b));
  r[6] = Bits(__hmin(a, b));
  r[7] = __heq(a, b) | __hgt(a, b) << 1 | __hisnan(b) << 2;
  r[8] = Bits(__float2bfloat16_rn(floats[i]));
  r[9] = Bits(__float2bfloat16_rz(floats[i]));
  r[10] = Bits(__float2bfloat16_rd(floats[i]));
  r[11] = Bits(__float2bfloat16_ru(floats[i]));
}

float Value(unsigned short bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

// mode: 0 nearest even, 1 towards zero, 2 down, 3 up; `x` is exact.
unsigned short Round(double x, int mode = 0) {
  if (std::isnan(x)) return 0x7fff;
  const unsigned short sign = std::signbit(x) ? 0x8000 : 0;
  const double m = std::fabs(x);
  if (std::isinf(x)) return sign | 0x7f80;
  int exponent = m == 0 ? -126 : std::ilogb(m);
  if (exponent < -126) exponent = -126;
  const double unit = std::ldexp(1.0, exponent - 7);
  double steps = m / unit;
  const bool away = (mode == 2 && sign) || (mode == 3 && !sign);
  steps = mode == 0 ? std::nearbyint(steps) : away ? std::ceil(steps) : std::floor(steps);
  const double rounded = steps * unit;
  if (rounded > 3.3895313892515355e38) return sign | (mode == 0 || away ? 0x7f80 : 0x7f7f);
  const float value = static_cast<float>(rounded);
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return sign | static_cast<unsigned short>(bits >> 16);
}

void Expect(unsigned short ab, unsigned short bb, float f, unsigned short* r) {
  const double a = Value(ab), b = Value(bb);
  r[0] = Round(a + b);
  r[1] = Round(a * b);
  r[2] = Round(std::fma(a, b, b));
  r[3] = Round(a - b);
  r[4] = Round(std::fma(b, a, b));
  const bool a_low = a < b || (a == b && std::signbit(a));
  const bool nan_a = std::isnan(a), nan_b = std::isnan(b);
  r[5] = nan_a && nan_b ? 0x7fff : nan_a ? bb : nan_b ? ab : a_low ? bb : ab;
  r[6] = nan_a && nan_b ? 0x7fff : nan_a ? bb : nan_b ? ab : a_low ? ab : bb;
  r[7] = (a == b) | (a > b) << 1 | nan_b << 2;
  for (int mode = 0; mode < 4; ++mode) r[8 + mode] = Round(f, mode);
}

}  // namespace

int main() {
  const unsigned short edges[] = {0,      0x8000, 1,      0x7f,   0x80,   0x3f80, 0xbf80,
                                  0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fff, 0x4049};
  std::vector<unsigned> in;
  for (const unsigned short a : edges) {
    for (const unsigned short b : edges) in.push_back(a | static_cast<unsigned>(b) << 16);
  }
  Random random(59);
  // Exponents near one, so that doubles hold every intermediate result.
  for (int i = 0; i < 2000; ++i) in.push_back((random.Next() & 0x87ff87ffu) | 0x3c003c00u);
  std::vector<float> floats;
  for (size_t i = 0; i < in.size(); ++i) {
    const uint32_t bits = i < 20 ? in[i] : random.Next();
    float value;
    std::memcpy(&value, &bits, 4);
    floats.push_back(value);
  }
  const int count = static_cast<int>(in.size());
  unsigned short* out = Unwritten<unsigned short>(count * kResults);
  Compute<<<(count + 63) / 64, 64>>>(ToDevice(in), ToDevice(floats), count, out);
  const std::vector<unsigned short> got = ToHost(out, count * kResults);
  for (int i = 0; i < count; ++i) {
    unsigned short expected[kResults];
    const unsigned short a = in[i] & 0xffff, b = in[i] >> 16;
    Expect(a, b, floats[i], expected);
    for (int k = 0; k < kResults; ++k) {
      const unsigned short value = got[i * kResults + k];
      const bool same = k != 7 && std::isnan(Value(expected[k])) ? std::isnan(Value(value))
                                                                 : value == expected[k];
      REQUIRE(same, "result %d of 0x%x (%g), 0x%x (%g), %g: 0x%x, expected 0x%x", k, a, Value(a), b,
              Value(b), floats[i], value, expected[k]);
    }
  }
  std::printf("PASS bfloat16s: %d pairs\n", count);
}
