// Weights are powers of two within 2^-12 of the largest: filters are exact in double. Probabilities
// are a quotient of exact sums (4 u, u = 2^-24), or exp2f of a difference to lse, which is off by
// (32 + |lse|) u itself, and the difference by |lse| u: below (64 + 4 |lse|) u. The difference to 1
// and the product with `upstream` round once each.
#include <allranks/oracle.h>

#include <algorithm>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kUnit = 0x1p-24;
  const std::size_t rows = call.Param("rows"), vocab = call.Param("vocab");
  const std::size_t words = call.world() * vocab;
  const std::size_t top = std::min<std::size_t>(call.Param("k"), words);
  const std::span<const std::int32_t> token = call.In<std::int32_t>(0, "token");
  const std::span<const std::int32_t> top_p = call.In<std::int32_t>(0, "top_p");
  const std::span<const float> upstream = call.In<float>(0, "upstream");
  std::vector<std::pair<float, std::size_t>> order(words);  // minus the logit, and the word
  std::vector<double> grad(words), bound(words);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t w = 0; w < words; ++w) {
      const int rank = static_cast<int>(w / vocab);
      order[w] = {-call.In<float>(rank, "logits")[row * vocab + w % vocab], w};
      grad[w] = bound[w] = 0;
    }
    std::partial_sort(order.begin(), order.begin() + top, order.end());
    const double most = -order[0].first;
    double total = 0, mass = 0;
    std::size_t through = 0, kept = 0;
    for (; through < top && -order[through].first >= most - 12; ++through) {
      total += std::exp2(-order[through].first - most);
    }
    for (; kept < through && 8 * mass <= top_p[row] * total; ++kept) {
      mass += std::exp2(-order[kept].first - most);
    }
    const double lse = most + std::log2(mass);
    for (std::size_t n = 0; n < kept; ++n) {
      const std::size_t w = order[n].second;
      const double p = std::exp2(-order[n].first - most) / mass;
      const double rest = (w == static_cast<std::size_t>(token[row]) ? 1 : 0) - p;
      grad[w] = upstream[row] * rest;
      bound[w] = ((64 + 4 * std::abs(lse)) * p + 4 * std::abs(rest)) * kUnit *
                 std::abs(static_cast<double>(upstream[row]));
    }
    for (int rank = 0; rank < call.world(); ++rank) {
      check.NearAt(rank, "grad", row * vocab, std::span(grad).subspan(rank * vocab, vocab),
                   std::span(bound).subspan(rank * vocab, vocab));
    }
  }
}
