// The stream within the error of any order of additions; the norm within what follows from it.
//
// With |stream - h| <= b, the squares add up to S = sum h^2 with an error of at most
// D = sum (2 |h| b + b^2), and hidden roundings per term: D + gamma(hidden) (S + D). The factor
// 1 / sqrt(S / hidden + eps) is monotone, so the ends of S's interval bound it. On top come, in
// units u = 2^-24: division, addition of eps: 2 u (half of it after the root); rsqrtf, of 2 ulp:
// 4 u, or an approximate root and quotient: 2 u + 4 u; two products: 2 u. Together below 10 u.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kUnit = 0x1p-24, kEpsilon = 1e-5, kRest = 10 * kUnit;
  const std::size_t rows = call.Param("rows"), hidden = call.Param("hidden"), n = rows * hidden;
  const Budget budget = SumBudget(Type::kF32, Type::kF32, Type::kF32, call.world() + 1);
  std::vector<double> sum(n), magnitude(n), h(n), b(n), norm(n), bound(n);
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::span<const float> in = call.In<float>(rank, "in");
    for (std::size_t i = 0; i < n; ++i) {
      sum[i] += in[i];
      magnitude[i] += std::abs(in[i]);
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::span<const float> residual = call.In<float>(rank, "residual");
    const std::span<const float> weight = call.In<float>(rank, "weight");
    for (std::size_t row = 0; row < n; row += hidden) {
      double squares = 0, error = 0;
      for (std::size_t i = row; i < row + hidden; ++i) {
        h[i] = sum[i] + residual[i];
        b[i] = budget.Of(magnitude[i] + std::abs(residual[i]), h[i]);
        squares += h[i] * h[i];
        error += (2 * std::abs(h[i]) + b[i]) * b[i];
      }
      error += Gamma(static_cast<double>(hidden), kUnit) * (squares + error);
      const auto factor = [&](double s) {
        return 1 / std::sqrt(std::max(s, 0.0) / hidden + kEpsilon);
      };
      const double exact = factor(squares);
      const double most = factor(squares - error) * (1 + kRest);
      const double least = factor(squares + error) * (1 - kRest);
      const double off = std::max(most - exact, exact - least);
      for (std::size_t i = row; i < row + hidden; ++i) {
        const double w = weight[i - row];
        norm[i] = w * h[i] * exact;
        bound[i] = std::abs(w) * (std::abs(h[i]) * off + b[i] * most) + 0x1p-126;
      }
    }
    check.Near(rank, "stream", h, b);
    check.Near(rank, "norm", norm, bound);
  }
}
