// Expected: the scaled matrix of the rank before, with this rank's bias, transposed.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto rows = static_cast<std::size_t>(call.Param("rows"));
  const auto cols = static_cast<std::size_t>(call.Param("cols"));
  std::vector<std::uint32_t> expected(rows * cols);
  for (int rank = 0; rank < call.world(); ++rank) {
    const int source = (rank + call.world() - 1) % call.world();
    const auto in = call.In<std::uint32_t>(source, "in");
    const auto scale = call.In<std::uint32_t>(source, "scale");
    const auto bias = call.In<std::uint32_t>(rank, "bias");
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < cols; ++j) {
        expected[j * rows + i] = (2 * scale[i] + 1) * in[i * cols + j] + bias[j];
      }
    }
    check.Exact(rank, "out", expected);
  }
}
