// 8-bit floating point, E4M3 and E5M2: every one of the 256 patterns to half and back, and floats
// rounded to them with and without saturation, against the formats' definition.
#include <cuda_fp8.h>
#include <cmath>
#include <cstring>

#include "arrays.h"

namespace {

template <__nv_fp8_interpretation_t kFormat>
__global__ void ToHalf(unsigned short* out) {
  out[threadIdx.x] =
      __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(threadIdx.x), kFormat).x;
}

template <__nv_fp8_interpretation_t kFormat>
__global__ void FromFloat(const float* in, int count, unsigned char* finite, unsigned char* pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  finite[i] = __nv_cvt_float_to_fp8(in[i], __NV_SATFINITE, kFormat);
  const __nv_fp8x2_storage_t pair =
      __nv_cvt_float2_to_fp8x2(make_float2(in[i], -in[i]), __NV_SATFINITE, kFormat);
  pairs[2 * i] = pair & 255;
  pairs[2 * i + 1] = pair >> 8;
}

struct Format {
  int mantissa, bias;
  double most;
  bool infinities;
};

double Value(const Format& format, unsigned char bits) {
  const int e = (bits & 127) >> format.mantissa, m = bits & ((1 << format.mantissa) - 1);
  const int top = (1 << (7 - format.mantissa)) - 1;
  double value;
  if (format.infinities && e == top) {
    value = m ? NAN : INFINITY;
  } else if (!format.infinities && (bits & 127) == 127) {
    value = NAN;
  } else if (e == 0) {
    value = std::ldexp(m, 1 - format.bias - format.mantissa);
  } else {
    value = std::ldexp(m + (1 << format.mantissa), e - format.bias - format.mantissa);
  }
  return bits & 128 ? -value : value;
}

unsigned char Round(const Format& format, double x) {
  if (std::isnan(x)) return 0x7f;
  const unsigned char sign = std::signbit(x) ? 128 : 0;
  const double m = std::fmin(std::fabs(x), format.most);
  int exponent = m == 0 ? 1 - format.bias : std::ilogb(m);
  if (exponent < 1 - format.bias) exponent = 1 - format.bias;
  const double unit = std::ldexp(1.0, exponent - format.mantissa);
  const double rounded = std::fmin(std::nearbyint(m / unit) * unit, format.most);
  for (int bits = 0; bits < 127; ++bits) {
    if (Value(format, static_cast<unsigned char>(bits)) == rounded) return sign | bits;
  }
  return 0;
}

double HalfValue(unsigned short bits) {
  const int e = bits >> 10 & 31, m = bits & 0x3ff;
  const double value = e == 31  ? (m ? NAN : INFINITY)
                       : e == 0 ? std::ldexp(m, -24)
                                : std::ldexp(m + 1024, e - 25);
  return bits & 0x8000 ? -value : value;
}

template <__nv_fp8_interpretation_t kFormat>
void Check(const Format& format) {
  unsigned short* halves = Unwritten<unsigned short>(256);
  ToHalf<kFormat><<<1, 256>>>(halves);
  const std::vector<unsigned short> got = ToHost(halves, 256);
  for (int bits = 0; bits < 256; ++bits) {
    const double expected = Value(format, static_cast<unsigned char>(bits)),
                 value = HalfValue(got[bits]);
    REQUIRE(std::isnan(expected)
                ? std::isnan(value)
                : value == expected && std::signbit(value) == std::signbit(expected),
            "0x%x is %g, expected %g", bits, value, expected);
  }
  std::vector<float> in = {
      0,         -0.0f, 1,     448,   449,   464,          465,           1e6f,          INFINITY,
      -INFINITY, NAN,   57344, 61440, 1e-9f, 0.001953125f, 0.0009765625f, 0.00097656256f};
  for (int bits = 0; bits < 126; ++bits) {
    // Each value, the middle to the next one, and both sides of that middle.
    const float low = static_cast<float>(Value(format, bits)),
                high = static_cast<float>(Value(format, bits + 1));
    if (!std::isfinite(high)) break;
    const float middle = (low + high) / 2;
    in.insert(in.end(),
              {low, -high, middle, std::nextafterf(middle, 0), std::nextafterf(middle, 1e9f)});
  }
  const int count = static_cast<int>(in.size());
  unsigned char* out = Unwritten<unsigned char>(3 * count);
  FromFloat<kFormat><<<(count + 63) / 64, 64>>>(ToDevice(in), count, out, out + count);
  const std::vector<unsigned char> rounded = ToHost(out, 3 * count);
  for (int i = 0; i < count; ++i) {
    const unsigned char expected[] = {Round(format, in[i]), Round(format, in[i]),
                                      Round(format, -in[i])};
    const unsigned char results[] = {rounded[i], rounded[count + 2 * i],
                                     rounded[count + 2 * i + 1]};
    for (int k = 0; k < 3; ++k) {
      // The sign of a NaN is not specified.
      const unsigned char mask = std::isnan(in[i]) ? 127 : 255;
      REQUIRE((results[k] & mask) == (expected[k] & mask), "%.9g becomes 0x%x (%d), expected 0x%x",
              in[i], results[k], k, expected[k]);
    }
  }
}

}  // namespace

int main() {
  Check<__NV_E4M3>({3, 7, 448, false});
  Check<__NV_E5M2>({2, 15, 57344, true});
  std::puts("PASS fp8");
}
