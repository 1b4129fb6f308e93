// Gains and the scalar are exact. With u = 2^-53: A * e * K has at most 4 roundings and the sum one
// more; (P - A K K) / lambda has at most 4 of A K K, one of the difference and two of the division,
// and 1 / lambda < 1.02. The budgets are twice as large, for the oracle rounds as often.
#include <allranks/oracle.h>

#include <cmath>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kForget = 63.0 / 64;
  const auto n = static_cast<std::size_t>(call.Param("n"));
  const std::size_t rows = n * static_cast<std::size_t>(call.Param("blocks"));
  std::vector<double> gains(call.world() * rows);
  double total = kForget * call.world() * static_cast<double>(call.Param("blocks"));
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto h = call.In<double>(rank, "gradient"), p = call.In<double>(rank, "covariance");
    for (std::size_t row = 0; row < rows; ++row) {
      double gain = 4.0 * static_cast<double>(n) * h[row];
      for (std::size_t j = 0; j < n; ++j) gain += p[row * n + j] * h[row / n * n + j];
      gains[rank * rows + row] = gain;
      total += gain * h[row];
    }
  }
  const double scale = 1 / total, error = call.In<double>(0, "error")[0];
  std::vector<double> expected(rows), bound(rows), next(rows * n), of_next(rows * n);
  for (int owner = 0; owner < call.world(); ++owner) {
    const double* gain = &gains[owner * rows];
    const auto p = call.In<double>(owner, "covariance"), w = call.In<double>(owner, "weight");
    for (std::size_t i = 0; i < rows; ++i) {
      const double step = scale * error * gain[i];
      expected[i] = w[i] + step;
      bound[i] = 0x1p-52 * (2 * std::abs(w[i]) + 8 * std::abs(step));
      for (std::size_t j = 0; j < n; ++j) {
        const double noise = i % n == j ? 4.0 * static_cast<double>(n) : 0;
        const double old = p[i * n + j] + noise, less = scale * gain[i] * gain[i / n * n + j];
        next[i * n + j] = (old - less) / kForget;
        of_next[i * n + j] = 0x1p-52 * (4 * std::abs(old) + 8 * std::abs(less));
      }
    }
    check.Near(owner, "new_covariance", next, of_next);
    for (int rank = 0; rank < call.world(); ++rank) {
      check.NearAt(rank, "weights", owner * rows, expected, bound);
    }
  }
}
