// Sums over rows and ranks, within the error of any order of additions (bounds.h).
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t rows = call.Param("rows"), hidden = call.Param("hidden");
  const std::uint64_t terms = call.world() * rows;
  const Budget of_weight = WeightedSumBudget(Type::kF32, Type::kF32, terms);
  const Budget of_bias = SumBudget(Type::kF32, Type::kF32, Type::kF32, terms);
  std::vector<double> weight(hidden), bias(hidden), weight_bound(hidden), bias_bound(hidden);
  for (int rank = 0; rank < call.world(); ++rank) {  // magnitudes first
    const std::span<const float> dy = call.In<float>(rank, "dy"), x = call.In<float>(rank, "xhat");
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t j = 0; j < hidden; ++j) {
        const double d = dy[row * hidden + j], product = d * x[row * hidden + j];
        weight[j] += product;
        weight_bound[j] += std::abs(product);
        bias[j] += d;
        bias_bound[j] += std::abs(d);
      }
    }
  }
  for (std::size_t j = 0; j < hidden; ++j) {
    weight_bound[j] = of_weight.Of(weight_bound[j], weight[j]);
    bias_bound[j] = of_bias.Of(bias_bound[j], bias[j]);
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Near(rank, "dweight", weight, weight_bound);
    check.Near(rank, "dbias", bias, bias_bound);
  }
}
