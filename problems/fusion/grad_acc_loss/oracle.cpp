// Sums of small integers are exact in any order. What is left is one quotient: 2 ulp, at most 4 u
// with u = 2^-24, by `/` or __fdividef; or a reciprocal of 1 ulp and a product, 3 u.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kRelative = 4 * 0x1p-24 + 0x1p-50;
  double sum = 0, tokens = 0;
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::span<const float> loss = call.In<float>(rank, "loss");
    const std::span<const std::int32_t> mask = call.In<std::int32_t>(rank, "mask");
    for (std::size_t i = 0; i < loss.size(); ++i) {
      sum += mask[i] * loss[i];
      tokens += mask[i];
    }
  }
  const double mean = tokens > 0 ? sum / tokens : 0, bound = std::abs(mean) * kRelative;
  const double factor = tokens > 0 ? call.world() / tokens : 0;
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::span<const std::int32_t> mask = call.In<std::int32_t>(rank, "mask");
    std::vector<double> grad(mask.size()), bounds(mask.size());
    for (std::size_t i = 0; i < mask.size(); ++i) {
      grad[i] = mask[i] * factor;
      bounds[i] = grad[i] * kRelative;
    }
    check.Near(rank, "mean", {&mean, 1}, {&bound, 1});
    check.Near(rank, "grad", grad, bounds);
  }
}
