// Every rank's `out` holds the shards of all ranks, in the order of ranks.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  for (int rank = 0; rank < call.world(); ++rank) {
    for (int source = 0; source < call.world(); ++source) {
      const auto shard = call.In<std::uint32_t>(source, "in");
      check.ExactAt<std::uint32_t>(rank, "out", source * shard.size(), shard);
    }
  }
}
