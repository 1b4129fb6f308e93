// Double functions of the CUDA math library within 2 ulp of the host's, and the fast intrinsics for
// float within their absolute errors.
#include <cmath>

#include "arrays.h"

namespace {

constexpr int kFunctions = 12;

__global__ void Compute(const double* in, int count, double* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const double x = in[i], p = fabs(x);
  double* r = out + i * kFunctions;
  sincos(x, &r[0], &r[1]);
  r[2] = exp(x), r[3] = log(p), r[4] = pow(p, 0.3), r[5] = sqrt(p);
  r[6] = cbrt(x), r[7] = erf(x), r[8] = tanh(x), r[9] = atan(x);
  r[10] = rsqrt(p), r[11] = fma(x, x, -1.0);
}

void Expect(double x, double* r) {
  const double p = std::fabs(x);
  r[0] = std::sin(x), r[1] = std::cos(x);
  r[2] = std::exp(x), r[3] = std::log(p), r[4] = std::pow(p, 0.3), r[5] = std::sqrt(p);
  r[6] = std::cbrt(x), r[7] = std::erf(x), r[8] = std::tanh(x), r[9] = std::atan(x);
  r[10] = 1 / std::sqrt(p), r[11] = std::fma(x, x, -1.0);
}

__global__ void Fast(const float* in, int count, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  out[i * 5] = __sinf(in[i]);
  out[i * 5 + 1] = __cosf(in[i]);
  out[i * 5 + 2] = __expf(in[i]);
  out[i * 5 + 3] = __logf(fabsf(in[i]) + 1);
  out[i * 5 + 4] = __fdividef(in[i], 3.0f);
}

}  // namespace

int main() {
  Random random(67);
  std::vector<double> in = {0.0, 1.0, -1.0, 0.5, 1e-10, 1e5, 700.0, -700.0, 2.0, 1e9};
  std::vector<float> small;
  for (int i = 0; i < 400; ++i) {
    in.push_back(random.Next() / 4294967296.0 * (i % 2 ? 2 : 200) - (i % 2 ? 1 : 100));
    small.push_back(static_cast<float>(random.Next()) / 4294967296.0f * 6.28f - 3.14f);
  }
  const int count = static_cast<int>(in.size()), floats = static_cast<int>(small.size());
  double* out = Unwritten<double>(count * kFunctions);
  Compute<<<(count + 63) / 64, 64>>>(ToDevice(in), count, out);
  const std::vector<double> got = ToHost(out, count * kFunctions);
  for (int i = 0; i < count; ++i) {
    double expected[kFunctions];
    Expect(in[i], expected);
    for (int k = 0; k < kFunctions; ++k) {
      const double value = got[i * kFunctions + k];
      if (std::isinf(expected[k])) {
        REQUIRE(value == expected[k], "function %d of %.17g is %.17g", k, in[i], value);
        continue;
      }
      const double ulp = std::nextafter(std::fabs(expected[k]), INFINITY) - std::fabs(expected[k]);
      // The host's own result may be one off.
      REQUIRE(std::fabs(value - expected[k]) <= 3 * ulp,
              "function %d of %.17g is %.17g, expected %.17g", k, in[i], value, expected[k]);
    }
  }
  float* fast = Unwritten<float>(floats * 5);
  Fast<<<(floats + 63) / 64, 64>>>(ToDevice(small), floats, fast);
  const std::vector<float> results = ToHost(fast, floats * 5);
  for (int i = 0; i < floats; ++i) {
    const float* r = &results[i * 5];
    const double x = small[i];
    // The guide: 2^-21.41 for sin and 2^-21.19 for cos within [-pi, pi], 2 ulp for division.
    REQUIRE(std::fabs(r[0] - std::sin(x)) <= std::exp2(-21.41), "__sinf(%.9g) is %.9g", x, r[0]);
    REQUIRE(std::fabs(r[1] - std::cos(x)) <= std::exp2(-21.19), "__cosf(%.9g) is %.9g", x, r[1]);
    REQUIRE(std::fabs(r[2] / std::exp(x) - 1) <= 6e-7, "__expf(%.9g) is %.9g", x, r[2]);
    REQUIRE(std::fabs(r[3] - std::log(static_cast<double>(std::fabs(small[i]) + 1))) <= 4e-7,
            "__logf(|%.9g| + 1) is %.9g", x, r[3]);
    REQUIRE(std::fabs(r[4] - x / 3) <= std::fabs(x) / 3 * 2.4e-7, "__fdividef(%.9g, 3) is %.9g", x,
            r[4]);
  }
  std::printf("PASS math_doubles: %d arguments\n", count);
}
