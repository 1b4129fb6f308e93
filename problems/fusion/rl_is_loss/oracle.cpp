// Means of all tokens within the error of any order, in units u = 2^-24.
//
// d is rounded once: |d| u, at most 2 u, relative for r. expf has 2 ulp, __expf 2 + 1.173 |d| ulp,
// exp2f of a rounded product 2 ulp and 2 |d| u, an ulp being up to 2 u: at most 9 u. So r is within
// 11 u, r^2 within 23 u, r * advantage within 12 u, and a quotient adds 4 u: below 20 u for grad,
// below 64 u on top of the N roundings of a sum of N terms. r - 1 - d may be added up as one term
// or as three: 3 N roundings of their magnitudes.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kUnit = 0x1p-24;
  constexpr std::size_t kSums = 7;
  const std::size_t n = call.Param("n");
  const double all = static_cast<double>(call.world() * n);
  std::vector<double> stats(kSums), bound(kSums);  // bound: magnitudes first
  const auto tokens = [&](int rank, auto&& use) {
    const std::span<const float> logp = call.In<float>(rank, "logp");
    const std::span<const float> old = call.In<float>(rank, "old_logp");
    const std::span<const float> advantage = call.In<float>(rank, "advantage");
    const std::span<const std::int32_t> mask = call.In<std::int32_t>(rank, "mask");
    for (std::size_t i = 0; i < n; ++i) {
      if (mask[i] != 0) use(i, static_cast<double>(logp[i]) - old[i], advantage[i]);
    }
  };
  for (int rank = 0; rank < call.world(); ++rank) {
    tokens(rank, [&](std::size_t, double d, double a) {
      const double r = std::exp(d);
      const double terms[kSums] = {1, -r * a, r, r * r, d, r - 1 - d, a};
      for (std::size_t j = 0; j < kSums; ++j) {
        stats[j] += terms[j];
        bound[j] += j == 5 ? r + 1 + std::abs(d) : std::abs(terms[j]);
      }
    });
  }
  const double inverse = stats[0] > 0 ? 1 / stats[0] : 0;
  for (std::size_t j = 1; j < kSums; ++j) {
    stats[j] *= inverse;
    bound[j] *= inverse * ((j == 5 ? 3 : 1) * all + 64) * kUnit;
  }
  bound[0] = 0;
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<double> grad(n), grad_bound(n);
    tokens(rank, [&](std::size_t i, double d, double a) {
      grad[i] = -std::exp(d) * a * inverse;
      grad_bound[i] = std::abs(grad[i]) * 20 * kUnit;
    });
    check.Near(rank, "stats", stats, bound);
    check.Near(rank, "grad", grad, grad_bound);
  }
}
