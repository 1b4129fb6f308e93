// All keys in order, cut where the counts of the ranks say.
#include <allranks/oracle.h>

#include <algorithm>

using namespace allranks::oracle;

namespace {
std::vector<std::uint32_t> Keys(const Call& call, int first, int last) {
  std::vector<std::uint32_t> all;
  for (int rank = first; rank < last; ++rank) {
    const auto keys = call.In<std::uint32_t>(rank, "keys");
    all.insert(all.end(), keys.begin(), keys.begin() + call.In<std::int32_t>(rank, "count")[0]);
  }
  std::sort(all.begin(), all.end());
  return all;
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::vector<std::uint32_t> all = Keys(call, 0, call.world());
  std::span<const std::uint32_t> left(all);
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::size_t n = call.In<std::int32_t>(rank, "count")[0];
    check.Exact<std::uint32_t>(rank, "out", left.first(n));
    left = left.subspan(n);
  }
}

// A rank without keys needs nothing of others. Of many possible keys, a set that comes from other
// ranks has more than a byte for each of its members, however it is coded; of few it may have less.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const auto all = Keys(call, 0, call.world()), own = Keys(call, rank, rank + 1);
  floor.hops = own.empty() ? 0 : 1;
  if (call.Param("range") < 1 << 24) return;
  auto first = all.begin() + static_cast<std::ptrdiff_t>(Keys(call, 0, rank).size());
  std::vector<std::uint32_t> kept(first, first + static_cast<std::ptrdiff_t>(own.size())), came;
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  std::set_difference(kept.begin(), kept.end(), own.begin(), own.end(), std::back_inserter(came));
  floor.ingress = static_cast<double>(came.size());
}
