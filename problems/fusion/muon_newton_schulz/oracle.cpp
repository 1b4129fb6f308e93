// The definition, in double. Y may be off by 2^(steps - 19), as the statement says:
//
// A step maps each singular value s to f(s) = a s + b s^3 + c s^5. An error of X grows in a step by
// at most the largest divided difference of f, that is by max(|f'|, |f / s|) < 4 for s <= 1.21,
// which f never exceeds; and by more than 2 only below 0.34 and above 1.14. So the allowed error
// doubles per step. A step in float adds errors of some 2^-24 of its sums, which are of products of
// rows of norm <= 1.21, and whose roundings hardly ever align. Measured over 20 draws each of 64,
// 128 and 512 columns and 1, 2, 3 and 5 steps, both with X itself and with polynomials of the first
// Gram matrix: float errs by 2^-23 at most with one step and by 2^-20 with five, at least 20 times
// less than allowed. Factors rounded to 11 bits err by 2^-16 at least with one step and by 2^-10.5
// with five, at least 3.5 times more than allowed.
#include <allranks/oracle.h>

#include <cmath>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr std::size_t kRows = 32;
  constexpr double kA = 3.4445f, kB = -4.775f, kC = 2.0315f;
  const std::size_t n = call.Param("n"), width = call.world() * n;
  std::vector<double> x(kRows * width), next(kRows * width);
  double norm = 0;
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<double> g = call.InAsDouble(rank, "g");
    for (std::size_t i = 0; i < g.size(); ++i) x[i / n * width + rank * n + i % n] = g[i];
    for (double v : g) norm += v * v;
  }
  for (double& v : x) v /= std::sqrt(norm);
  for (int step = 0; step < call.Param("steps"); ++step) {
    double a[kRows][kRows] = {};
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        for (std::size_t k = 0; k < width; ++k) a[i][j] += x[i * width + k] * x[j * width + k];
        a[j][i] = a[i][j];
      }
    }
    next.assign(next.size(), 0);
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < kRows; ++j) {
        double square = 0;
        for (std::size_t k = 0; k < kRows; ++k) square += a[i][k] * a[j][k];
        const double p = (i == j ? kA : 0) + kB * a[i][j] + kC * square;
        for (std::size_t k = 0; k < width; ++k) next[i * width + k] += p * x[j * width + k];
      }
    }
    x.swap(next);
  }
  const double allowed = std::ldexp(1, static_cast<int>(call.Param("steps")) - 19);
  const std::vector<double> bound(kRows * n, allowed);
  std::vector<double> y(kRows * n);
  for (int rank = 0; rank < call.world(); ++rank) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i / n * width + rank * n + i % n];
    check.Near(rank, "y", y, bound);
  }
}
