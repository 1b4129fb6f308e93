// Both passes of every rank in integers, then sums of the products with `scale` within the error of
// any order of fp32 operations.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const int world = call.world();
  const auto layers = static_cast<std::size_t>(call.Param("layers"));
  const auto m = static_cast<std::size_t>(call.Param("m"));
  const Budget budget = WeightedSumBudget(Type::kF32, Type::kF32, world);
  for (int owner = 0; owner < world; ++owner) {
    const auto w = call.In<float>(owner, "shard");
    std::vector<double> sum(layers * m), bound(layers * m), h(layers + 1);
    for (int rank = 0; rank < world; ++rank) {
      const auto x = call.In<float>(rank, "x").subspan(owner * m, m);
      const auto scale = call.In<float>(rank, "scale").subspan(owner * m, m);
      for (std::size_t j = 0; j < m; ++j) {
        h[0] = x[j];
        for (std::size_t l = 0; l < layers; ++l) {
          h[l + 1] = std::clamp<double>(w[l * m + j] * h[l] + x[j], -8, 8);
        }
        double d = h[layers];
        for (std::size_t l = layers; l-- > 0;) {
          const double g = d * h[l] * scale[j];
          sum[l * m + j] += g;
          bound[l * m + j] += std::abs(g);
          d = std::clamp<double>(w[l * m + j] * d + h[l], -8, 8);
        }
      }
    }
    for (std::size_t i = 0; i < layers * m; ++i) bound[i] = budget.Of(bound[i], sum[i]);
    check.Near(owner, "grad", sum, bound);
  }
}
