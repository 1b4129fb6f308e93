// Expected: the columns of the next rank's matrix, packed.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto rows = static_cast<std::uint64_t>(call.Param("rows"));
  const auto pitch = static_cast<std::uint64_t>(call.Param("pitch"));
  const auto column = static_cast<std::uint64_t>(call.Param("column"));
  const auto width = static_cast<std::uint64_t>(call.Param("width"));
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto in = call.In<std::uint32_t>((rank + 1) % call.world(), "in");
    for (std::uint64_t row = 0; row < rows; ++row) {
      check.ExactAt(rank, "out", row * width, in.subspan(row * pitch + column, width));
    }
  }
}
