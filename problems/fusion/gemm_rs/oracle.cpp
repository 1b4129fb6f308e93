// The sum of all ranks' products is one product: their slices of A and B side by side.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto k = static_cast<std::size_t>(call.Param("depth")) * 64;
  const auto rows = static_cast<std::size_t>(call.Param("tiles")) * 64;
  const auto world = static_cast<std::size_t>(call.world());
  const auto side_by_side = [&](const char* tensor, std::size_t first, std::size_t count) {
    std::vector<F16> wide;
    for (std::size_t row = first; row < first + count; ++row) {
      for (int rank = 0; rank < call.world(); ++rank) {
        const auto slice = call.In<F16>(rank, tensor).subspan(row * k, k);
        wide.insert(wide.end(), slice.begin(), slice.end());
      }
    }
    return wide;
  };
  const std::vector<F16> b = side_by_side("b", 0, 32);
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<F16> a = side_by_side("a", static_cast<std::size_t>(rank) * rows, rows);
    const std::vector<std::span<const F16>> blocks = {a};
    Product<F16, F16, float>(call, check, rank, "c", blocks, b, world * k, 32, true);
  }
}
