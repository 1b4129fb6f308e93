// Rotated keys within the error of two products and a sum in float, rounded to bf16; values bit by
// bit; rows of the caches before and behind those of this call untouched.
#include <allranks/oracle.h>

#include <cmath>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t world = call.world(), tokens = call.Param("tokens"), dim = call.Param("dim");
  const std::int64_t row = call.Param("heads") * dim, past = call.Param("past"), half = dim / 2;
  const Budget budget = WeightedSumBudget(Type::kF32, Type::kBf16, 2);
  std::vector<double> expected(tokens * row), bound(tokens * row);
  for (int source = 0; source < world; ++source) {
    const auto k = call.InAsDouble(source, "k"), turns = call.InAsDouble(source, "turns");
    for (std::int64_t i = 0; i < tokens * row; ++i) {
      const std::int64_t at = i % dim, turn = i / row * dim + at % half;
      const double straight = k[i] * turns[turn];
      const double crossed = (at < half ? -k[i + half] : k[i - half]) * turns[turn + half];
      expected[i] = straight + crossed;
      bound[i] = budget.Of(std::abs(straight) + std::abs(crossed), expected[i]);
    }
    const std::int64_t first = (past + source * tokens) * row;
    for (int rank = 0; rank < world; ++rank) {
      check.NearAt(rank, "k_cache", first, expected, bound);
      check.ExactAt<BF16>(rank, "v_cache", first, call.In<BF16>(source, "v"));
    }
  }
  for (int rank = 0; rank < world; ++rank) {
    for (const char* cache : {"k_cache", "v_cache"}) {
      check.Untouched(rank, cache, 0, past * row);
      check.Untouched(rank, cache, (past + world * tokens) * row);
    }
  }
}
