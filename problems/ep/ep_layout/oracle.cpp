// Counts of a rank's own choices.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t world = call.world(), per = call.Param("per"), topk = call.Param("topk");
  const std::int64_t tokens = call.Param("tokens");
  for (int rank = 0; rank < world; ++rank) {
    const auto ids = call.In<std::int32_t>(rank, "ids");
    std::vector<std::int32_t> experts(world * per), ranks(world);
    std::vector<std::uint8_t> map(tokens * world);
    for (std::int64_t i = 0; i < tokens * topk; ++i) {
      ++experts[ids[i]];
      map[i / topk * world + ids[i] / per] = 1;
    }
    for (std::int64_t i = 0; i < tokens * world; ++i) ranks[i % world] += map[i];
    check.Exact(rank, "expert_tokens", experts);
    check.Exact(rank, "rank_tokens", ranks);
    check.Exact(rank, "in_rank", map);
  }
}
