// In double, from g and u that are exact. With H and d the exact element of h and how far it may be
// off, as the statement says, y is off by at most sum |down| d, and by the error of any order of
// additions, on tensor cores, of all F * world / 2 terms of at most |down| (|H| + d).
//
// An element of h in float: __expf(-g) is off by a factor of 1 +- (1.2 |g| + 2) 2^-23, |g| <= 128;
// the quotient by 2^-22, two sums and products by 2^-24 each: together below 2^-14. Rounding to a
// half adds 2^-11, and 2^-25 where it is subnormal.
#include <allranks/oracle.h>

#include <cmath>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t k = call.Param("depth") * 64, half = call.Param("inner") * 64, f = 2 * half;
  const std::size_t n = call.Param("cols") * 32, rows = call.Param("tiles") * 64;
  const Budget budget = DotBudget(Type::kF32, Type::kF32, f * call.world() / 2);
  // By side of the grid: sums over the column, magnitudes of their terms, what h may be off.
  std::vector<double> y[2], magnitude[2], off[2];
  for (int side = 0; side < 2; ++side) {
    for (auto* v : {&y[side], &magnitude[side], &off[side]}) v->assign(rows * n, 0);
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    // Weights of the pair, transposed so that sums run along the vectors: [k][f] and [f][n].
    std::vector<float> gate(k * f), up(k * f), down(f * n), g(f), u(f);
    for (int member = 0; member < 2; ++member) {
      const int owner = rank / 2 * 2 + member;
      const auto gates = call.In<F16>(owner, "gate"), ups = call.In<F16>(owner, "up");
      const auto downs = call.In<F16>(owner, "down");
      for (std::size_t i = 0; i < half * k; ++i) {
        const std::size_t to = i % k * f + member * half + i / k;
        gate[to] = static_cast<float>(ToDouble(gates[i]));
        up[to] = static_cast<float>(ToDouble(ups[i]));
      }
      for (std::size_t i = 0; i < n * half; ++i) {
        down[(member * half + i % half) * n + i / half] = static_cast<float>(ToDouble(downs[i]));
      }
    }
    const auto x = call.In<F16>(rank, "x");
    const int side = rank % 2;
    for (std::size_t i = 0; i < rows; ++i) {
      g.assign(f, 0), u.assign(f, 0);
      for (std::size_t j = 0; j < k; ++j) {
        const float factor = static_cast<float>(ToDouble(x[i * k + j]));
        for (std::size_t c = 0; c < f; ++c) g[c] += factor * gate[j * f + c];
        for (std::size_t c = 0; c < f; ++c) u[c] += factor * up[j * f + c];
      }
      for (std::size_t c = 0; c < f; ++c) {
        const double value = g[c] / 8.0 / (1 + std::exp(-g[c] / 8.0)) * (u[c] / 8.0);
        const double error = (0x1p-11 + 0x1p-14) * std::abs(value) + 0x1p-24;
        for (std::size_t o = 0; o < n; ++o) {
          const double weight = down[c * n + o], size = std::abs(weight);
          y[side][i * n + o] += value * weight;
          magnitude[side][i * n + o] += size * (std::abs(value) + error);
          off[side][i * n + o] += size * error;
        }
      }
    }
  }
  std::vector<double> bound(rows * n);
  for (int rank = 0; rank < call.world(); ++rank) {
    const int side = rank % 2;
    for (std::size_t o = 0; o < rows * n; ++o) {
      bound[o] = off[side][o] + budget.Of(magnitude[side][o], y[side][o]);
    }
    check.Near(rank, "y", y[side], bound);
  }
}
