// Weights are powers of two within 2^-12 of the largest: filters are exact in double, only the
// logarithm is rounded. In units u = 2^-24, log2f has 1 ulp, __log2f an absolute 2^-22 or 2 ulp,
// __logf 2^-21.4 or 3 ulp times 1.45, the logarithm being at most 5: below 32 u. Adding m, and the
// difference to the logit, are within 4 u of their results.
#include <allranks/oracle.h>

#include <algorithm>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kUnit = 0x1p-24;
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const std::size_t rows = call.Param("rows"), vocab = call.Param("vocab");
  const std::size_t words = call.world() * vocab;
  const std::size_t top = std::min<std::size_t>(call.Param("k"), words);
  const std::span<const std::int32_t> token = call.In<std::int32_t>(0, "token");
  const std::span<const std::int32_t> top_p = call.In<std::int32_t>(0, "top_p");
  std::vector<std::pair<float, std::size_t>> order(words);  // minus the logit, and the word
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t w = 0; w < words; ++w) {
      const int rank = static_cast<int>(w / vocab);
      order[w] = {-call.In<float>(rank, "logits")[row * vocab + w % vocab], w};
    }
    std::partial_sort(order.begin(), order.begin() + top, order.end());
    const double most = -order[0].first;
    double total = 0, mass = 0, logprob = kNone;
    std::size_t through = 0, n = 0;
    for (; through < top && -order[through].first >= most - 12; ++through) {
      total += std::exp2(-order[through].first - most);
    }
    for (; n < through && 8 * mass <= top_p[row] * total; ++n) {
      mass += std::exp2(-order[n].first - most);
      if (order[n].second == static_cast<std::size_t>(token[row])) logprob = -order[n].first;
    }
    const std::int32_t kept = static_cast<std::int32_t>(n);
    const double lse = most + std::log2(mass), bound = (32 + 4 * std::abs(lse)) * kUnit;
    logprob -= lse;
    const double wider = bound + 4 * std::abs(logprob) * kUnit;
    for (int rank = 0; rank < call.world(); ++rank) {
      check.ExactAt<std::int32_t>(rank, "kept", row, {&kept, 1});
      check.NearAt(rank, "lse", row, {&lse, 1}, {&bound, 1});
      if (logprob == kNone) {
        check.ExactAt<float>(rank, "logprob", row, {&kNone, 1});
      } else {
        check.NearAt(rank, "logprob", row, {&logprob, 1}, {&wider, 1});
      }
    }
  }
}
