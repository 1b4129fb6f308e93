// Rows of every expert in the order of (source, token), padded with zeros to whole tiles.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t per = call.Param("per"), topk = call.Param("topk"), tile = call.Param("tile");
  const std::int64_t tokens = call.Param("tokens"), hidden = call.Param("hidden");
  std::vector<std::vector<std::int32_t>> lists(call.world() * per);  // by expert
  for (int source = 0; source < call.world(); ++source) {
    const auto ids = call.In<std::int32_t>(source, "ids");
    for (std::int64_t i = 0; i < tokens * topk; ++i) {
      lists[ids[i]].push_back(static_cast<std::int32_t>(source * tokens + i / topk));
    }
  }
  const std::vector<BF16> zeros(hidden);
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<std::int32_t> origin, starts = {0};
    for (std::int64_t e = 0; e < per; ++e) {
      const std::vector<std::int32_t>& list = lists[rank * per + e];
      origin.insert(origin.end(), list.begin(), list.end());
      while (static_cast<std::int64_t>(origin.size()) % tile != 0) origin.push_back(-1);
      starts.push_back(static_cast<std::int32_t>(origin.size()));
    }
    check.Exact(rank, "starts", starts);
    check.Exact(rank, "origin", origin);
    for (std::size_t i = 0; i < origin.size(); ++i) {
      std::span<const BF16> row(zeros);
      if (origin[i] >= 0) {
        const auto x = call.In<BF16>(static_cast<int>(origin[i] / tokens), "x");
        row = x.subspan(origin[i] % tokens * hidden, hidden);
      }
      check.ExactAt<BF16>(rank, "rows", i * hidden, row);
    }
    check.Untouched(rank, "rows", origin.size() * hidden);
  }
}

// A row comes once to each rank that has experts of it, and leaves once if one of them is another.
// It is written to memory once per expert.
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
