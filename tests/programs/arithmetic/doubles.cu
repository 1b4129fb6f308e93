// Doubles, bit for bit: the four operations, fma and square root in all four roundings, remainder,
// comparisons and conversions with NaN, infinities, signed zeros and denormals.
#include <cfenv>
#include <cmath>
#include <cstring>

#include "arrays.h"

namespace {

constexpr int kResults = 28;

__device__ void Rounded(double a, double b, double* r) {
  r[0] = __dadd_rn(a, b), r[1] = __dadd_rd(a, b), r[2] = __dadd_ru(a, b), r[3] = __dadd_rz(a, b);
  r[4] = __dmul_rn(a, b), r[5] = __dmul_rd(a, b), r[6] = __dmul_ru(a, b), r[7] = __dmul_rz(a, b);
  r[8] = __ddiv_rn(a, b), r[9] = __ddiv_rd(a, b), r[10] = __ddiv_ru(a, b), r[11] = __ddiv_rz(a, b);
  r[12] = __fma_rn(a, b, a), r[13] = __fma_rd(a, b, a), r[14] = __fma_ru(a, b, a),
  r[15] = __fma_rz(a, b, a);
  r[16] = __dsqrt_rn(a), r[17] = __dsqrt_rd(a), r[18] = __dsqrt_ru(a), r[19] = __dsqrt_rz(a);
}

__global__ void Compute(const double2* in, int count, double* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const double a = in[i].x, b = in[i].y;
  double* r = out + i * kResults;
  Rounded(a, b, r);
  r[20] = fmin(a, b), r[21] = fmax(a, b);
  r[22] = trunc(a) + floor(b), r[23] = ceil(a) * rint(b);
  r[24] =
      (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * isnan(a) + 32 * (signbit(b) != 0);
  r[25] = static_cast<double>(__double2ll_rz(a)) + static_cast<double>(__double2int_rn(b));
  r[26] = static_cast<float>(a);
  r[27] = copysign(a, b) - fabs(b);
}

template <class Function>
double In(int rounding, Function function) {
  std::fesetround(rounding);
  volatile double result = function();
  std::fesetround(FE_TONEAREST);
  return result;
}

long long ToLong(double a) {
  // The PTX ISA: where source or destination has 64 bits, NaN becomes the smallest integer.
  if (std::isnan(a)) return INT64_MIN;
  if (a >= 9223372036854775808.0) return INT64_MAX;
  if (a <= -9223372036854775808.0) return INT64_MIN;
  return static_cast<long long>(a);
}

int ToInt(double a) {
  if (std::isnan(a)) return INT32_MIN;
  a = std::nearbyint(a);
  return a >= 2147483647.0 ? INT32_MAX : a <= -2147483648.0 ? INT32_MIN : static_cast<int>(a);
}

void Expect(double a, double b, double* r) {
  const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
  for (int mode = 0; mode < 4; ++mode) {
    const volatile double x = a, y = b;
    r[mode] = In(modes[mode], [&] { return x + y; });
    r[4 + mode] = In(modes[mode], [&] { return x * y; });
    r[8 + mode] = In(modes[mode], [&] { return x / y; });
    r[12 + mode] = In(modes[mode], [&] { return std::fma(x, y, x); });
    r[16 + mode] = In(modes[mode], [&] { return std::sqrt(x); });
  }
  // fmin and fmax return the number where one is NaN, and take -0 for smaller than +0.
  r[20] = std::isnan(a)   ? b
          : std::isnan(b) ? a
          : a == b        ? (std::signbit(a) ? a : b)
          : a < b         ? a
                          : b;
  r[21] = std::isnan(a)   ? b
          : std::isnan(b) ? a
          : a == b        ? (std::signbit(a) ? b : a)
          : a < b         ? b
                          : a;
  r[22] = std::trunc(a) + std::floor(b);
  r[23] = std::ceil(a) * std::nearbyint(b);
  r[24] = (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * std::isnan(a) +
          32 * std::signbit(b);
  r[25] = static_cast<double>(ToLong(a)) + static_cast<double>(ToInt(b));
  r[26] = static_cast<float>(a);
  r[27] = std::copysign(a, b) - std::fabs(b);
}

}  // namespace

int main() {
  const double edges[] = {0.0,
                          -0.0,
                          1,
                          -1,
                          INFINITY,
                          -INFINITY,
                          NAN,
                          5e-324,
                          -5e-324,
                          2.2250738585072014e-308,
                          1.7976931348623157e308,
                          0.1,
                          3,
                          4503599627370497.5,
                          -2147483648.5,
                          9.3e18};
  std::vector<double> in;
  for (const double a : edges) {
    for (const double b : edges) in.push_back(a), in.push_back(b);
  }
  Random random(53);
  for (int i = 0; i < 1000; ++i) {
    uint64_t bits = random.Next64();
    if (i % 2) bits = (bits & ~(0x7ffull << 52)) | (0x3ffull + random.Next() % 60 - 30) << 52;
    double value;
    std::memcpy(&value, &bits, 8);
    in.push_back(value);
  }
  const int count = static_cast<int>(in.size() / 2);
  double* out = Unwritten<double>(count * kResults);
  Compute<<<(count + 63) / 64, 64>>>(reinterpret_cast<double2*>(ToDevice(in)), count, out);
  const std::vector<double> got = ToHost(out, count * kResults);
  for (int i = 0; i < count; ++i) {
    double expected[kResults];
    Expect(in[2 * i], in[2 * i + 1], expected);
    for (int k = 0; k < kResults; ++k) {
      const double value = got[i * kResults + k];
      const bool same =
          std::isnan(expected[k]) ? std::isnan(value) : std::memcmp(&value, &expected[k], 8) == 0;
      REQUIRE(same, "result %d of %.17g, %.17g: %.17g, expected %.17g", k, in[2 * i], in[2 * i + 1],
              value, expected[k]);
    }
  }
  std::printf("PASS doubles: %d pairs\n", count);
}
