// The sum of squares is exact. A root, a division and a product, each of at most two units in the
// last place, stay within eight units of 2^-24.
#include <allranks/oracle.h>

#include <cmath>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  double total = 0;
  for (int rank = 0; rank < call.world(); ++rank) {
    for (const float g : call.In<float>(rank, "grad")) total += double{g} * g;
  }
  const double norm = std::sqrt(total), limit = static_cast<double>(call.Param("max_norm"));
  const double scale = norm > limit ? limit / norm : 1;
  constexpr double kError = 0x1p-21;
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Near(rank, "norm", std::vector{norm}, std::vector{norm * kError});
    const auto grad = call.In<float>(rank, "grad");
    std::vector<double> expected(grad.begin(), grad.end()), bound(grad.size());
    for (std::size_t i = 0; i < grad.size(); ++i) {
      expected[i] *= scale;
      bound[i] = std::abs(expected[i]) * kError;
    }
    check.Near(rank, "clipped", expected, bound);
  }
}
