// Pairs of all lists in order, each at the owner of its id; what lies behind the last one
// untouched.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
std::span<const std::uint64_t> IdsOf(const Call& call, int source) {
  return call.In<std::uint64_t>(source, "ids").first(call.In<std::int32_t>(source, "count")[0]);
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t width = 4 * call.Param("quads");
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<std::uint64_t> ids;
    std::vector<std::int32_t> received(call.world());
    for (int source = 0; source < call.world(); ++source) {
      const auto values = call.In<std::uint32_t>(source, "values");
      std::int64_t from = 0;
      for (const std::uint64_t id : IdsOf(call, source)) {
        if (id % call.world() == static_cast<unsigned>(rank)) {
          check.ExactAt<std::uint32_t>(rank, "out_values", ids.size() * width,
                                       values.subspan(from * width, width));
          ids.push_back(id);
          ++received[source];
        }
        ++from;
      }
    }
    check.Untouched(rank, "out_values", ids.size() * width);
    check.Exact(rank, "out_ids", ids);
    check.Exact(rank, "received", received);
  }
}

// Pairs that change the rank cross a link, all are read and written once.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double bytes = 16.0 * static_cast<double>(call.Param("quads")) + 8;
  std::int64_t sent = 0, kept = 0, came = 0;
  for (int source = 0; source < call.world(); ++source) {
    for (const std::uint64_t id : IdsOf(call, source)) {
      const bool owned = id % call.world() == static_cast<unsigned>(rank);
      if (source == rank) {
        owned ? ++kept : ++sent;
      } else if (owned) {
        ++came;
      }
    }
  }
  floor.ingress = bytes * static_cast<double>(came);
  floor.egress = bytes * static_cast<double>(sent);
  floor.hbm = bytes * static_cast<double>(sent + 2 * kept + came);
}
