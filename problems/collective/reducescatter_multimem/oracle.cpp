// Expected shards: the sum over ranks, within the error of any order of fp32 additions and one
// rounding to bf16.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
struct Shard {
  std::int64_t begin = 0, count = 0;
};

Shard ShardOf(const Call& call, int rank) {
  const std::int64_t n = call.Param("n"), world = call.world();
  const std::int64_t shard = 8 * ((n + 8 * world - 1) / (8 * world)), begin = rank * shard;
  return {begin, std::clamp<std::int64_t>(n - begin, 0, shard)};
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  for (int rank = 0; rank < call.world(); ++rank) {
    const Shard shard = ShardOf(call, rank);
    if (shard.count > 0) {
      std::vector<Piece> in;
      for (int r = 0; r < call.world(); ++r) {
        in.push_back({r, "in", static_cast<std::uint64_t>(shard.begin)});
      }
      check.Sum(in, std::vector<Piece>{{rank, "out"}}, shard.count);
    }
    check.Untouched(rank, "out", shard.count);
  }
}

// The switch sends the sums of the own shard. Out goes what the own input has of other shards.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t own = ShardOf(call, rank).count;
  floor.ingress = 2.0 * static_cast<double>(own);
  floor.egress = 2.0 * static_cast<double>(call.Param("n") - own);
}
