// Tokens of every source and expert in ascending order; what lies behind them keeps its poison.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t world = call.world(), per = call.Param("per"), topk = call.Param("topk");
  const std::int64_t tokens = call.Param("tokens"), hidden = call.Param("hidden");
  std::vector<std::vector<std::int32_t>> lists(world * per * world);  // by expert and source
  for (int source = 0; source < world; ++source) {
    const auto ids = call.In<std::int32_t>(source, "ids");
    for (std::int64_t i = 0; i < tokens * topk; ++i) {
      lists[ids[i] * world + source].push_back(static_cast<std::int32_t>(i / topk));
    }
  }
  for (int rank = 0; rank < world; ++rank) {
    std::vector<std::int32_t> counts;
    for (std::int64_t pair = 0; pair < per * world; ++pair) {
      const std::vector<std::int32_t>& list = lists[rank * per * world + pair];
      const auto x = call.In<BF16>(static_cast<int>(pair % world), "x");
      const auto count = static_cast<std::int64_t>(list.size());
      counts.push_back(static_cast<std::int32_t>(count));
      for (std::int64_t i = 0; i < count; ++i) {
        check.ExactAt<BF16>(rank, "recv_x", (pair * tokens + i) * hidden,
                            x.subspan(list[i] * hidden, hidden));
      }
      check.ExactAt<std::int32_t>(rank, "recv_token", pair * tokens, list);
      check.Untouched(rank, "recv_token", pair * tokens + count, (pair + 1) * tokens);
      check.Untouched(rank, "recv_x", (pair * tokens + count) * hidden,
                      (pair + 1) * tokens * hidden);
    }
    check.Exact(rank, "recv_count", counts);
  }
}

// A row comes once to each rank that has experts of it, and leaves once if one of them is another.
// It is read and written in memory once per expert.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t per = call.Param("per"), topk = call.Param("topk");
  std::int64_t came = 0, left = 0, stored = 0, crossed = 0;
  for (int source = 0; source < call.world(); ++source) {
    const auto ids = call.In<std::int32_t>(source, "ids");
    for (std::int64_t t = 0; t < call.Param("tokens"); ++t) {
      std::vector<char> to(call.world());
      for (std::int64_t k = 0; k < topk; ++k) {
        const std::int64_t holder = ids[t * topk + k] / per;
        stored += holder == rank;
        to[holder] = 1;
      }
      to[source] = 0;
      std::int64_t ranks = 0;
      for (const char one : to) ranks += one;
      crossed += ranks;
      came += to[rank];
      left += source == rank && ranks > 0;
    }
  }
  const double row_bytes = 2.0 * static_cast<double>(call.Param("hidden"));
  floor.ingress = static_cast<double>(came) * row_bytes;
  floor.egress = static_cast<double>(left) * row_bytes;
  floor.busiest = static_cast<double>(crossed) / call.world() * row_bytes;
  floor.hbm = static_cast<double>(stored) * row_bytes;
}
