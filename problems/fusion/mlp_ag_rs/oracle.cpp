// In double, from g and u that are exact. With H and d the exact element of h and how far it may be
// off, as the statement says, y is off by at most sum |down| d, and by the error of any order of
// additions, on tensor cores, of world * F terms of at most |down| (|H| + d).
//
// An element of h in float: __expf(-g) is off by a factor of 1 +- (1.2 |g| + 2) 2^-23, |g| <= 128;
// the quotient by 2^-22, two sums and products by 2^-24 each: together below 2^-14. Rounding to a
// half adds 2^-11, and 2^-25 where it is subnormal.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

// The transpose of `rows` rows, so that sums run along the vectors.
std::vector<float> Transposed(std::span<const F16> from, std::size_t rows) {
  const std::size_t width = from.size() / rows;
  std::vector<float> to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i % width * rows + i / width] = static_cast<float>(ToDouble(from[i]));
  }
  return to;
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t k = call.Param("depth") * 64, f = call.Param("inner") * 64;
  const std::size_t n = call.Param("cols") * 32, rows = call.Param("tiles") * 64;
  const Budget budget = DotBudget(Type::kF32, Type::kF32, call.world() * f);
  std::vector<std::vector<float>> gate, up, down;
  for (int p = 0; p < call.world(); ++p) {
    gate.push_back(Transposed(call.In<F16>(p, "gate"), f));
    up.push_back(Transposed(call.In<F16>(p, "up"), f));
    down.push_back(Transposed(call.In<F16>(p, "down"), n));
  }
  std::vector<float> g(f), u(f);
  std::vector<double> y(rows * n), bound(rows * n), magnitude(n), off(n);
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<float> x = Transposed(call.In<F16>(rank, "x"), rows);
    std::fill(y.begin(), y.end(), 0.0);
    for (std::size_t i = 0; i < rows; ++i) {
      double* sums = &y[i * n];
      std::fill(magnitude.begin(), magnitude.end(), 0.0);
      std::fill(off.begin(), off.end(), 0.0);
      for (int p = 0; p < call.world(); ++p) {
        std::fill(g.begin(), g.end(), 0.0f);
        std::fill(u.begin(), u.end(), 0.0f);
        for (std::size_t j = 0; j < k; ++j) {
          const float factor = x[j * rows + i];
          for (std::size_t c = 0; c < f; ++c) g[c] += factor * gate[p][j * f + c];
          for (std::size_t c = 0; c < f; ++c) u[c] += factor * up[p][j * f + c];
        }
        for (std::size_t c = 0; c < f; ++c) {
          const double value = g[c] / 8.0 / (1 + std::exp(-g[c] / 8.0)) * (u[c] / 8.0);
          const double error = (0x1p-11 + 0x1p-14) * std::abs(value) + 0x1p-24;
          const float* weights = &down[p][c * n];
          for (std::size_t o = 0; o < n; ++o) {
            const double size = std::abs(weights[o]);
            sums[o] += value * weights[o];
            magnitude[o] += size * (std::abs(value) + error);
            off[o] += size * error;
          }
        }
      }
      for (std::size_t o = 0; o < n; ++o) {
        bound[i * n + o] = off[o] + budget.Of(magnitude[o], sums[o]);
      }
    }
    check.Near(rank, "y", y, bound);
  }
}
