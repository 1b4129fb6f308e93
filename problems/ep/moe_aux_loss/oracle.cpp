// Counts are exact. Each gate passes at most all - 1 rounded additions on its way to `importance`;
// on its way to the loss also those over experts, and less than 16 factors and quotients.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t experts = 8 * call.Param("groups"), topk = call.Param("topk");
  const std::int64_t all = call.world() * call.Param("tokens");
  std::vector<std::int32_t> load(experts);
  std::vector<double> sum(experts), magnitude(experts), bound(experts);
  for (int rank = 0; rank < call.world(); ++rank) {
    for (const std::int32_t expert : call.In<std::int32_t>(rank, "ids")) ++load[expert];
    const auto gates = call.In<float>(rank, "gates");
    for (std::size_t i = 0; i < gates.size(); ++i) {
      sum[i % experts] += gates[i];
      magnitude[i % experts] += std::abs(gates[i]);
    }
  }
  const Budget budget = SumBudget(Type::kF32, Type::kF32, Type::kF32, all);
  const double scale = static_cast<double>(experts) / (static_cast<double>(all) * all * topk);
  std::vector<double> loss(1), loss_bound = {0x1p-100};
  for (std::int64_t e = 0; e < experts; ++e) {
    bound[e] = budget.Of(magnitude[e], sum[e]);
    loss[0] += scale * load[e] * sum[e];
    loss_bound[0] += scale * load[e] * magnitude[e] * Gamma(all + experts + 16, 0x1p-24);
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact(rank, "load", load);
    check.Near(rank, "importance", sum, bound);
    check.Near(rank, "loss", loss, loss_bound);
  }
}
