// Samples of seeds, and all nodes of two hops in order.
#include <allranks/oracle.h>

#include <algorithm>

using namespace allranks::oracle;

namespace {
// The sample of a node of any rank.
std::span<const std::int32_t> Sample(const Call& call, std::int64_t node) {
  const std::int64_t nodes = call.Param("nodes"), width = call.Param("width");
  const auto owner = static_cast<int>(node / nodes);
  const std::int64_t degree = call.In<std::int32_t>(owner, "degree")[node % nodes];
  return call.In<std::int32_t>(owner, "neighbours")
      .subspan(node % nodes * width, std::min(degree, call.Param("fanout")));
}

void Unique(std::vector<std::int32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t batch = call.Param("batch"), fanout = call.Param("fanout");
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto seeds = call.In<std::int32_t>(rank, "seeds");
    std::vector<std::int32_t> picked(batch * fanout, -1), first, ids(seeds.begin(), seeds.end());
    for (std::int64_t i = 0; i < batch; ++i) {
      const auto sample = Sample(call, seeds[i]);
      std::copy(sample.begin(), sample.end(), picked.begin() + i * fanout);
      first.insert(first.end(), sample.begin(), sample.end());
    }
    Unique(first);
    ids.insert(ids.end(), first.begin(), first.end());
    for (std::int32_t node : first) {
      const auto sample = Sample(call, node);
      ids.insert(ids.end(), sample.begin(), sample.end());
    }
    Unique(ids);
    check.Exact(rank, "picked", picked);
    check.Exact(rank, "ids", ids);
    check.Exact(rank, "count", std::vector{static_cast<std::int32_t>(ids.size())});
  }
}

// What a rank picks of distinct seeds of other ranks comes over a link: each is any node, and has
// at least a byte if there are 256 nodes.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const auto given = call.In<std::int32_t>(rank, "seeds");
  std::vector<std::int32_t> seeds(given.begin(), given.end());
  Unique(seeds);
  std::size_t picked = 0;
  for (std::int32_t seed : seeds) {
    if (seed / call.Param("nodes") != rank) picked += Sample(call, seed).size();
  }
  const bool bytes = call.world() * call.Param("nodes") >= 256;
  floor.ingress = bytes ? static_cast<double>(picked) : 0;
  floor.hbm = 4.0 * static_cast<double>(given.size() * (1 + call.Param("fanout")));
}
