// The backward pass of every rank in integers, then averages of the products within the error of
// any order of fp32 operations.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const int world = call.world();
  const auto layers = static_cast<std::size_t>(call.Param("layers"));
  const auto n = static_cast<std::size_t>(call.Param("n"));
  const double unit = UnitOf(Type::kF32), smallest = SmallestOf(Type::kF32);
  std::vector<double> average(layers * n), bound(layers * n);
  for (int rank = 0; rank < world; ++rank) {
    const auto w = call.In<float>(rank, "w"), x = call.In<float>(rank, "x");
    std::vector<double> d = call.InAsDouble(rank, "error");
    for (std::size_t l = layers; l-- > 0;) {
      double s = 0;
      for (std::size_t i = 0; i < n; ++i) s += w[l * n + i] * d[i];
      const double sign = s > 0 ? 1 : s < 0 ? -1 : 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double g = d[i] * x[l * n + i] / world;
        average[l * n + i] += g;
        bound[l * n + i] += std::abs(g);
        d[i] = std::clamp(w[l * n + i] * d[i] + sign, -8.0, 8.0);
      }
    }
  }
  // A term's product and its share of the additions, the division, and the factor's own rounding.
  // Products and quotients may underflow.
  for (double& b : bound) {
    b = b * Gamma(world + 2, unit) * (1 + 0x1p-40) + 2 * (world + 1) * smallest;
  }
  for (int rank = 0; rank < world; ++rank) check.Near(rank, "grad", average, bound);
}
