// Expected shards: fp32 sums in the order of the ring, which leave one result for each element.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
struct Shard {
  std::int64_t begin = 0, count = 0;
};

Shard ShardOf(const Call& call, int rank) {
  const std::int64_t n = call.Param("n"), world = call.world();
  const std::int64_t shard = 4 * ((n + 4 * world - 1) / (4 * world)), begin = rank * shard;
  return {begin, std::clamp<std::int64_t>(n - begin, 0, shard)};
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  for (int rank = 0; rank < call.world(); ++rank) {
    const Shard shard = ShardOf(call, rank);
    std::vector<float> sum(shard.count);
    for (int step = 1; step <= call.world(); ++step) {
      const auto in = call.In<float>((rank + step) % call.world(), "in");
      for (std::int64_t i = 0; i < shard.count; ++i) {
        const float x = in[shard.begin + i];
        sum[i] = step == 1 ? x : sum[i] + x;
      }
    }
    check.Exact(rank, "out", sum);
  }
}

// What others have of the own shard comes in, perhaps added up by them already; what the own
// input has of other shards goes out.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t own = ShardOf(call, rank).count;
  floor.ingress = 4.0 * static_cast<double>(own);
  floor.egress = 4.0 * static_cast<double>(call.Param("n") - own);
}
