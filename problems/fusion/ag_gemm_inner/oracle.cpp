// In double, with the budget of a dot product of world * K halves in floats, in any order.
#include <allranks/oracle.h>

#include <cmath>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t m = call.Param("tiles") * 64, k = call.Param("depth") * 64, n = 64;
  const std::size_t length = call.world() * k;
  const Budget budget = DotBudget(Type::kF32, Type::kF32, length);
  std::vector<double> a;  // rows of all ranks, one slice below the other
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<double> slice = call.InAsDouble(rank, "a");
    a.insert(a.end(), slice.begin(), slice.end());
  }
  std::vector<double> b(length * n), c(m * n), bound(m * n);
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<double> columns = call.InAsDouble(rank, "b");
    for (std::size_t j = 0; j < n * length; ++j) b[j % length * n + j / length] = columns[j];
    for (std::size_t i = 0; i < m; ++i) {
      double sums[n] = {}, magnitudes[n] = {};
      for (std::size_t d = 0; d < length; ++d) {
        const double factor = a[d * m + i];
        for (std::size_t j = 0; j < n; ++j) {
          const double term = factor * b[d * n + j];
          sums[j] += term;
          magnitudes[j] += std::abs(term);
        }
      }
      for (std::size_t j = 0; j < n; ++j) {
        c[i * n + j] = sums[j];
        bound[i * n + j] = budget.Of(magnitudes[j], sums[j]);
      }
    }
    check.Near(rank, "c", c, bound);
  }
}
