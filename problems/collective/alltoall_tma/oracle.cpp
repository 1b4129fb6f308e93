// Rows by expert and source: row expert * world + s of a rank is what s had for this expert of it.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t experts = call.Param("experts"), n = call.Param("n"), world = call.world();
  for (int source = 0; source < world; ++source) {
    const auto in = call.In<std::uint32_t>(source, "in");
    for (int rank = 0; rank < world; ++rank) {
      for (std::int64_t e = 0; e < experts; ++e) {
        check.ExactAt<std::uint32_t>(rank, "out", (e * world + source) * n,
                                     in.subspan((rank * experts + e) * n, n));
      }
    }
  }
}
