// Row i of every rank's `out` holds row i of all ranks, in the order of ranks.
#include <allranks/oracle.h>

#include <algorithm>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t rows = call.Param("rows"), width = call.Param("width");
  std::vector<std::uint32_t> gathered(rows * call.world() * width);
  for (int source = 0; source < call.world(); ++source) {
    const auto in = call.In<std::uint32_t>(source, "in");
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(&in[row * width], width, &gathered[(row * call.world() + source) * width]);
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact<std::uint32_t>(rank, "out", gathered);
  }
}
