// Lists of every expert and group in order; what lies behind them keeps its poison.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t group = call.Param("group"), per = call.Param("per");
  const std::int64_t tokens = call.Param("tokens"), hidden = call.Param("hidden");
  const std::int64_t topk = call.Param("topk"), rows = group * tokens;
  std::vector<std::vector<std::int32_t>> lists(call.world() * per);  // by rank and expert
  std::vector<std::int32_t> load(group * per);
  for (int source = 0; source < call.world(); ++source) {
    const auto ids = call.In<std::int32_t>(source, "ids");
    for (std::int64_t i = 0; i < tokens * topk; ++i) {
      const auto item = static_cast<std::int32_t>(source * tokens + i / topk);
      lists[source / group * group * per + ids[i]].push_back(item);
      ++load[ids[i]];
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<std::int32_t> counts(per * group);
    for (std::int64_t e = 0; e < per; ++e) {
      const std::vector<std::int32_t>& list = lists[rank * per + e];
      std::int64_t row = e * rows;
      check.ExactAt<std::int32_t>(rank, "recv_from", row, list);
      for (const std::int32_t item : list) {
        const int source = static_cast<int>(item / tokens);
        ++counts[e * group + source % group];
        check.ExactAt<BF16>(rank, "recv_x", row++ * hidden,
                            call.In<BF16>(source, "x").subspan(item % tokens * hidden, hidden));
      }
      check.Untouched(rank, "recv_from", row, (e + 1) * rows);
      check.Untouched(rank, "recv_x", row * hidden, (e + 1) * rows * hidden);
    }
    check.Exact(rank, "count", counts);
    check.Exact(rank, "load", load);
  }
}

// A row comes once to each member that has experts of it, and leaves once if one of them is
// another; it is written once per expert.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t group = call.Param("group"), per = call.Param("per");
  const std::int64_t tokens = call.Param("tokens"), topk = call.Param("topk");
  std::int64_t came = 0, left = 0, stored = 0;
  for (std::int64_t source = rank / group * group; source < (rank / group + 1) * group; ++source) {
    const auto ids = call.In<std::int32_t>(static_cast<int>(source), "ids");
    for (std::int64_t t = 0; t < tokens; ++t) {
      bool here = false, elsewhere = false;
      for (std::int64_t k = 0; k < topk; ++k) {
        const bool own = ids[t * topk + k] / per == rank % group;
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
