// Rows of all ranks, of which each rank gets its columns.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t tokens = call.Param("tokens"), cols = call.Param("cols");
  std::vector<BF16> part(tokens * cols);
  for (int rank = 0; rank < call.world(); ++rank) {
    for (int source = 0; source < call.world(); ++source) {
      const auto in = call.In<BF16>(source, "in");
      for (std::int64_t t = 0; t < tokens; ++t) {
        std::copy_n(&in[(t * call.world() + rank) * cols], cols, &part[t * cols]);
      }
      check.ExactAt<BF16>(rank, "out", source * tokens * cols, part);
    }
  }
}
