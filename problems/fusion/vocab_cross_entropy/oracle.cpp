// Softmax and loss of integer logits, in double, with errors in units u = 2^-24.
//
// Differences of the logits are exact. An exponential of -d is off by (4 + 2.4 d) u at most: expf
// has 2 ulp, __expf 2 + 1.173 d ulp, exp2f of a rounded product 2 ulp and 2 d u; an ulp is up to
// 2 u. Rescaling to another maximum multiplies by such an exponential; the distances add up to d.
// With 64 rescalings of 8 u, and n roundings of additions, a term or the sum of all is within
// (A + 4 d) u, A = n + 512; for the sum, d becomes its mean D under the softmax. A quotient takes
// both; exp(x - lse) instead rounds lse and the difference: 2 |lse| u. The logarithm adds 3 ulp or
// 2^-21.4, below (8 + 3 log n) u; log n <= 10 and the sum with the maximum are in 32 u + 4 |lse| u.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kUnit = 0x1p-24, kTiny = 0x1p-120;
  const std::size_t rows = call.Param("rows"), vocab = call.Param("vocab");
  const double world = call.world(), terms = world * static_cast<double>(vocab) + 512;
  std::vector<double> most(rows, -1e9), sum(rows), distance(rows), chosen(rows);
  std::vector<double> loss(rows), loss_bound(rows), grad(rows * vocab), bound(rows * vocab);
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::span<const float> x = call.In<float>(rank, "logits");
    for (std::size_t i = 0; i < x.size(); ++i) {
      most[i / vocab] = std::max<double>(most[i / vocab], x[i]);
    }
  }
  double exps[201];  // by the distance to the maximum
  for (int d = 0; d <= 200; ++d) exps[d] = std::exp(-d);
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::span<const float> x = call.In<float>(rank, "logits");
    const std::span<const std::int32_t> label = call.In<std::int32_t>(rank, "label");
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = row * vocab; i < (row + 1) * vocab; ++i) {
        const double d = most[row] - x[i];
        sum[row] += exps[static_cast<int>(d)];
        distance[row] += d * exps[static_cast<int>(d)];
      }
      chosen[row] += x[row * vocab + label[row]] / world;
    }
  }
  for (std::size_t row = 0; row < rows; ++row) {
    distance[row] /= sum[row];
    const double lse = most[row] + std::log(sum[row]);
    loss[row] = lse - chosen[row];
    loss_bound[row] =
        (terms + 4 * distance[row] + 32 + 4 * std::abs(lse) + 2 * std::abs(chosen[row])) * kUnit;
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::span<const float> x = call.In<float>(rank, "logits");
    const std::span<const std::int32_t> label = call.In<std::int32_t>(rank, "label");
    for (std::size_t row = 0; row < rows; ++row) {
      const double lse = std::abs(most[row] + std::log(sum[row]));
      for (std::size_t j = 0; j < vocab; ++j) {
        const std::size_t i = row * vocab + j;
        const double d = most[row] - x[i], p = exps[static_cast<int>(d)] / sum[row];
        const double off = (2 * terms + 4 * d + 4 * distance[row] + 2 * lse) * kUnit;
        const double target = static_cast<std::size_t>(label[row]) == j ? 1 / world : 0;
        grad[i] = p - target;
        bound[i] = p * off + kTiny + (std::abs(grad[i]) + target) * 2 * kUnit;
      }
    }
    check.Near(rank, "loss", loss, loss_bound);
    check.Near(rank, "grad", grad, bound);
  }
}
