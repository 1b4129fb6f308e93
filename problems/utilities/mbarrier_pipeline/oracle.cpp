// Products of the next rank's rows with the own vector, modulo 2^32.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto rows = static_cast<std::size_t>(call.Param("rows"));
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::uint32_t* x = call.In<std::uint32_t>((rank + 1) % call.world(), "x").data();
    const std::uint32_t* w = call.In<std::uint32_t>(rank, "w").data();
    std::vector<std::uint32_t> out(rows, 0);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t c = 0; c < 256; ++c) out[i] += x[i * 256 + c] * w[c];
    }
    check.Exact(rank, "out", out);
  }
}
