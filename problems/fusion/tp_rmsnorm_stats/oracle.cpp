// Squares of small integers add up exactly in any order, so what is left are, in units u = 2^-24:
// division and addition of eps, 2 u (half of it after the root); rsqrtf, of 2 ulp: 4 u, or an
// approximate root and quotient: 2 u + 4 u; two products: 2 u. Together below 10 u.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kEpsilon = 1e-5, kRelative = 10 * 0x1p-24;
  const std::size_t rows = call.Param("rows"), hidden = call.Param("hidden");
  std::vector<double> squares(rows), norm(rows * hidden), bound(rows * hidden);
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::span<const float> x = call.In<float>(rank, "x");
    for (std::size_t i = 0; i < x.size(); ++i) squares[i / hidden] += x[i] * x[i];
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::span<const float> x = call.In<float>(rank, "x");
    const std::span<const float> weight = call.In<float>(rank, "weight");
    for (std::size_t row = 0; row < rows; ++row) {
      const double mean = squares[row] / static_cast<double>(call.world() * hidden);
      const double factor = 1 / std::sqrt(mean + kEpsilon);
      for (std::size_t j = 0; j < hidden; ++j) {
        const std::size_t i = row * hidden + j;
        norm[i] = weight[j] * (x[i] * factor);
        bound[i] = std::abs(norm[i]) * kRelative;
      }
    }
    check.Near(rank, "norm", norm, bound);
  }
}
