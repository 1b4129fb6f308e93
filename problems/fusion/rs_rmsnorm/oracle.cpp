// The norm within what any order of float operations gives.
//
// An element of the sum h may be off by b, the error of any order of additions. So the squares add
// up to S = sum h^2 with an error of at most D = sum (2 |h| b + b^2), and hidden roundings per
// term: D + gamma(hidden) (S + D). The factor 1 / sqrt(S / hidden + eps) is monotone, so the ends
// of S's interval bound it. On top come, in units u = 2^-24: division, addition of eps: 2 u (half
// of it after the root); rsqrtf, of 2 ulp: 4 u, or an approximate root and quotient: 2 u + 4 u; two
// products: 2 u. Together below 10 u.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kUnit = 0x1p-24, kEpsilon = 1e-5, kRest = 10 * kUnit;
  const std::size_t rows = call.Param("rows"), hidden = call.Param("hidden"), n = rows * hidden;
  const Budget budget = SumBudget(Type::kF32, Type::kF32, Type::kF32, call.world());
  std::vector<double> sum(n), magnitude(n), b(n), norm(n), bound(n);
  for (int rank = 0; rank < call.world(); ++rank) {
    std::fill(sum.begin(), sum.end(), 0.0);
    std::fill(magnitude.begin(), magnitude.end(), 0.0);
    for (int from = 0; from < call.world(); ++from) {
      const std::span<const float> in = call.In<float>(from, "in").subspan(rank * n, n);
      for (std::size_t i = 0; i < n; ++i) {
        sum[i] += in[i];
        magnitude[i] += std::abs(in[i]);
      }
    }
    const std::span<const float> weight = call.In<float>(rank, "weight");
    for (std::size_t row = 0; row < n; row += hidden) {
      double squares = 0, error = 0;
      for (std::size_t i = row; i < row + hidden; ++i) {
        b[i] = budget.Of(magnitude[i], sum[i]);
        squares += sum[i] * sum[i];
        error += (2 * std::abs(sum[i]) + b[i]) * b[i];
      }
      error += Gamma(static_cast<double>(hidden), kUnit) * (squares + error);
      const auto factor = [&](double s) {
        return 1 / std::sqrt(std::max(s, 0.0) / static_cast<double>(hidden) + kEpsilon);
      };
      const double exact = factor(squares), most = factor(squares - error) * (1 + kRest);
      const double least = factor(squares + error) * (1 - kRest);
      const double off = std::max(most - exact, exact - least);
      for (std::size_t i = row; i < row + hidden; ++i) {
        const double w = weight[i - row];
        norm[i] = w * sum[i] * exact;
        bound[i] = std::abs(w) * (std::abs(sum[i]) * off + b[i] * most) + 0x1p-126;
      }
    }
    check.Near(rank, "norm", norm, bound);
  }
}
