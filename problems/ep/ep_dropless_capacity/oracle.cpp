// All tokens ask in order; those that fit are written, and everything else keeps its poison.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
// For each choice of each rank: its place, or -1.
std::vector<std::vector<std::int32_t>> Places(const Call& call) {
  const std::int64_t per = call.Param("per");
  std::vector<std::int32_t> asked(call.world() * per);
  std::vector<std::vector<std::int32_t>> places(call.world());
  for (int rank = 0; rank < call.world(); ++rank) {
    for (const std::int32_t e : call.In<std::int32_t>(rank, "ids")) {
      const std::int32_t place = asked[e]++;
      const auto room = call.In<std::int32_t>(static_cast<int>(e / per), "room");
      places[rank].push_back(place < room[e % per] ? place : -1);
    }
  }
  return places;
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t per = call.Param("per"), tokens = call.Param("tokens");
  const std::int64_t topk = call.Param("topk"), hidden = call.Param("hidden");
  const std::int64_t most = call.Param("most");
  const std::vector<std::vector<std::int32_t>> places = Places(call);
  std::vector<std::vector<std::int32_t>> lists(call.world() * per);  // by expert: what fits
  std::vector<std::uint32_t> fits(call.world() * tokens);
  for (int source = 0; source < call.world(); ++source) {
    const auto ids = call.In<std::int32_t>(source, "ids");
    for (std::int64_t i = 0; i < tokens * topk; ++i) {
      if (places[source][i] < 0) continue;
      const std::int64_t item = source * tokens + i / topk;
      fits[item] |= 1u << ids[i];
      lists[ids[i]].push_back(static_cast<std::int32_t>(item));
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact(rank, "fits", fits);
    check.Exact(rank, "slots", places[rank]);
    for (std::int64_t e = 0; e < per; ++e) {
      const std::vector<std::int32_t>& list = lists[rank * per + e];
      std::int64_t row = e * most;
      check.ExactAt<std::int32_t>(rank, "recv_from", row, list);
      for (const std::int32_t item : list) {
        const auto x = call.In<BF16>(static_cast<int>(item / tokens), "x");
        check.ExactAt<BF16>(rank, "recv_x", row++ * hidden,
                            x.subspan(item % tokens * hidden, hidden));
      }
      check.Untouched(rank, "recv_from", row, (e + 1) * most);
      check.Untouched(rank, "recv_x", row * hidden, (e + 1) * most * hidden);
    }
  }
}

// A row that fits comes once to each rank that has room for it, and leaves once if one of them is
// another; it is written once per expert.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t per = call.Param("per"), topk = call.Param("topk");
  const std::vector<std::vector<std::int32_t>> places = Places(call);
  std::int64_t came = 0, left = 0, stored = 0;
  for (int source = 0; source < call.world(); ++source) {
    const auto ids = call.In<std::int32_t>(source, "ids");
    for (std::int64_t t = 0; t < call.Param("tokens"); ++t) {
      bool here = false, elsewhere = false;
      for (std::int64_t i = t * topk; i < (t + 1) * topk; ++i) {
        if (places[source][i] < 0) continue;
        const bool own = ids[i] / per == rank;
        stored += own;
        here |= own;
        elsewhere |= !own;
      }
      came += source != rank && here;
      left += source == rank && elsewhere;
    }
  }
  const double row_bytes = 2.0 * static_cast<double>(call.Param("hidden"));
  floor.ingress = static_cast<double>(came) * row_bytes;
  floor.egress = static_cast<double>(left) * row_bytes;
  floor.hbm = static_cast<double>(stored) * row_bytes;
}
