// The product by Freivalds' check; the shards of all ranks, one behind the other, bit by bit.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto k = static_cast<std::size_t>(call.Param("depth")) * 64;
  const auto width = static_cast<std::size_t>(call.Param("cols")) * 32;
  std::vector<std::uint32_t> next;
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto shard = call.In<std::uint32_t>(rank, "shard");
    next.insert(next.end(), shard.begin(), shard.end());
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<std::span<const F16>> x = {call.In<F16>(rank, "x")};
    Product<F16, F16, float>(call, check, rank, "y", x, call.In<F16>(rank, "w"), k, width, true);
    check.Exact(rank, "next", next);
  }
}
