// Sums of squares are exact. A root, a division and a product follow, each off by at most two units
// in the last place, which are four roundings of 2^-24: twelve in all, below sixteen.
#include <allranks/oracle.h>

#include <cmath>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const char* const names[3][2] = {
      {"dense", "new_dense"}, {"expert", "new_expert"}, {"replicated", "new_replicated"}};
  const std::int64_t ep = call.Param("ep");
  const double factors[3] = {1, 1 / static_cast<double>(ep), 1};
  std::vector<double> norms(4);
  for (int k = 0; k < 3; ++k) {
    for (int rank = 0; rank < (k == 2 ? ep : call.world()); ++rank) {
      double sum = 0;
      for (const float g : call.In<float>(rank, names[k][0])) sum += double{g} * g;
      norms[k] += sum * factors[k] * factors[k];
    }
    norms[3] += norms[k];
  }
  constexpr double kError = 0x1p-20;
  std::vector<double> bounds(4);
  for (int k = 0; k < 4; ++k) {
    norms[k] = std::sqrt(norms[k]);
    bounds[k] = norms[k] * kError;
  }
  const auto limit = static_cast<double>(call.Param("max_norm"));
  const double scale = norms[3] > limit ? limit / norms[3] : 1;
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Near(rank, "norms", norms, bounds);
    for (int k = 0; k < 3; ++k) {
      const auto in = call.In<float>(rank, names[k][0]);
      std::vector<double> expected(in.begin(), in.end()), bound(in.size());
      for (std::size_t i = 0; i < in.size(); ++i) {
        expected[i] *= factors[k] * scale;
        bound[i] = std::abs(expected[i]) * kError;
      }
      check.Near(rank, names[k][1], expected, bound);
    }
  }
}
