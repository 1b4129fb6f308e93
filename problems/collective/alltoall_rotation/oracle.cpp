// Chunk s of rank d is chunk d of rank s.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t n = 4 * call.Param("quads");
  for (int rank = 0; rank < call.world(); ++rank) {
    for (int source = 0; source < call.world(); ++source) {
      check.ExactAt<std::uint32_t>(rank, "out", source * n,
                                   call.In<std::uint32_t>(source, "in").subspan(rank * n, n));
    }
  }
}
