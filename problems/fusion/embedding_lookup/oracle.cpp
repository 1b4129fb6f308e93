// Rows of the queries, copied bit by bit; zeros for ids that the table does not have.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t width = 4 * call.Param("quads"), vocab = call.Param("vocab");
  const std::int64_t per = (vocab + call.world() - 1) / call.world();
  const std::vector<std::uint32_t> zeros(width);
  for (int rank = 0; rank < call.world(); ++rank) {
    std::int64_t at = 0;
    for (const std::int64_t id : call.In<std::int32_t>(rank, "ids")) {
      std::span<const std::uint32_t> row = zeros;
      if (id < vocab) {
        const auto shard = call.In<std::uint32_t>(static_cast<int>(id / per), "shard");
        row = shard.subspan(id % per * width, width);
      }
      check.ExactAt<std::uint32_t>(rank, "out", at, row);
      at += width;
    }
  }
}

// Every distinct row of another rank comes over a link at least once. Rows that several ranks want
// may be passed on, so nothing is said of what owners send.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t vocab = call.Param("vocab");
  const std::int64_t per = (vocab + call.world() - 1) / call.world();
  std::vector<bool> seen(vocab);
  std::int64_t rows = 0;
  for (const std::int64_t id : call.In<std::int32_t>(rank, "ids")) {
    if (id >= vocab || id / per == rank || seen[id]) continue;
    seen[id] = true;
    ++rows;
  }
  floor.ingress = 16.0 * static_cast<double>(rows * call.Param("quads"));
}
