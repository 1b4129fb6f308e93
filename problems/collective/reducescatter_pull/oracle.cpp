// Expected shards: fp32 sums in the order of ranks, which leave one result for each element.
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
    std::vector<float> sum(shard.count);
    for (int r = 0; r < call.world(); ++r) {
      const auto in = call.In<BF16>(r, "in");
      for (std::int64_t i = 0; i < shard.count; ++i) {
        const auto x = static_cast<float>(ToDouble(in[shard.begin + i]));
        sum[i] = r == 0 ? x : sum[i] + x;
      }
    }
    check.Exact(rank, "out", sum);
  }
}

// Sums of what others have of the own shard come in, at the least; what the own input has of other
// shards goes out.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t own = ShardOf(call, rank).count;
  floor.ingress = 2.0 * static_cast<double>(own);
  floor.egress = 2.0 * static_cast<double>(call.Param("n") - own);
}
