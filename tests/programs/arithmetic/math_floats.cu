// Float functions of the CUDA math library against the host's double ones, within the errors that
// the CUDA C++ Programming Guide states (in units in the last place), and exact special values.
#include <cmath>

#include "arrays.h"

namespace {

constexpr int kFunctions = 20;

__global__ void Compute(const float* in, int count, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float x = in[i], p = fabsf(x);
  float* r = out + i * kFunctions;
  r[0] = sinf(x), r[1] = cosf(x), r[2] = tanf(x);
  r[3] = expf(x), r[4] = exp2f(x), r[5] = expm1f(x);
  r[6] = logf(p), r[7] = log2f(p), r[8] = log10f(p), r[9] = log1pf(p);
  r[10] = powf(p, 1.7f), r[11] = sqrtf(p), r[12] = rsqrtf(p), r[13] = cbrtf(x);
  r[14] = erff(x), r[15] = erfcf(x), r[16] = tanhf(x), r[17] = atan2f(x, 2.0f);
  r[18] = hypotf(x, 3.0f), r[19] = fmodf(x, 0.7f);
}

// Maximum error in ulp, from the guide's table; powf 4, tanf 4.
constexpr double kUlps[kFunctions] = {2, 2, 4, 2, 2, 1, 1, 1, 2, 1, 4, 0, 2, 1, 2, 4, 2, 3, 3, 0};
const char* const kNames[kFunctions] = {"sin",  "cos",   "tan",   "exp",   "exp2",  "expm1", "log",
                                        "log2", "log10", "log1p", "pow",   "sqrt",  "rsqrt", "cbrt",
                                        "erf",  "erfc",  "tanh",  "atan2", "hypot", "fmod"};

void Expect(double x, double* r) {
  const double p = std::fabs(x);
  r[0] = std::sin(x), r[1] = std::cos(x), r[2] = std::tan(x);
  r[3] = std::exp(x), r[4] = std::exp2(x), r[5] = std::expm1(x);
  r[6] = std::log(p), r[7] = std::log2(p), r[8] = std::log10(p), r[9] = std::log1p(p);
  r[10] = std::pow(p, static_cast<double>(1.7f)), r[11] = std::sqrt(p), r[12] = 1 / std::sqrt(p),
  r[13] = std::cbrt(x);
  r[14] = std::erf(x), r[15] = std::erfc(x), r[16] = std::tanh(x), r[17] = std::atan2(x, 2.0);
  r[18] = std::hypot(x, 3.0), r[19] = std::fmod(x, static_cast<double>(0.7f));
}

}  // namespace

int main() {
  Random random(61);
  std::vector<float> in = {0.0f,   -0.0f, 1.0f,  -1.0f,  0.5f,   3.14159265f, 100000.0f,
                           -88.0f, 88.7f, 1e-6f, 1e-30f, 2.5e8f, INFINITY,    NAN};
  for (int i = 0; i < 600; ++i) {
    const float unit = static_cast<float>(random.Next()) / 4294967296.0f;
    in.push_back(i % 3 == 0 ? unit * 20 - 10 : i % 3 == 1 ? unit * 0.01f : unit * 160 - 80);
  }
  const int count = static_cast<int>(in.size());
  float* out = Unwritten<float>(count * kFunctions);
  Compute<<<(count + 63) / 64, 64>>>(ToDevice(in), count, out);
  const std::vector<float> got = ToHost(out, count * kFunctions);
  for (int i = 0; i < count; ++i) {
    double expected[kFunctions];
    Expect(in[i], expected);
    for (int k = 0; k < kFunctions; ++k) {
      const float value = got[i * kFunctions + k], wanted = static_cast<float>(expected[k]);
      if (std::isnan(wanted)) {
        REQUIRE(std::isnan(value), "%s(%.9g) is %.9g, expected NaN", kNames[k], in[i], value);
        continue;
      }
      if (std::isinf(wanted) || wanted == 0) {
        REQUIRE(value == wanted && (k == 19 || std::signbit(value) == std::signbit(wanted)),
                "%s(%.9g) is %.9g, expected %.9g", kNames[k], in[i], value, wanted);
        continue;
      }
      const double ulp =
          std::fmax(std::fabs(std::nextafterf(std::fabs(wanted), INFINITY) - std::fabs(wanted)),
                    std::ldexp(1.0, -149));
      const double error = std::fabs(value - expected[k]) / ulp;
      REQUIRE(error <= kUlps[k] + 0.51, "%s(%.9g) is %.9g, expected %.9g: %g ulp", kNames[k], in[i],
              value, expected[k], error);
    }
  }
  std::printf("PASS math_floats: %d arguments, %d functions\n", count, kFunctions);
}
