// Entries at their aligned places; whatever lies between and behind them keeps its poison.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  for (int rank = 0; rank < call.world(); ++rank) {
    const int sender = (rank + call.world() - 1) % call.world();
    const auto sizes = call.In<std::int32_t>(sender, "sizes");
    const auto in = call.In<std::uint32_t>(sender, "in");
    check.Exact<std::int32_t>(rank, "got_sizes", sizes);
    std::uint64_t from = 0, to = 0;
    for (const std::int32_t size : sizes) {
      check.ExactAt<std::uint32_t>(rank, "out", to, in.subspan(from, size));
      const std::uint64_t end = to + size;
      from += size;
      to += (size + 3) / 4 * 4;
      check.Untouched(rank, "out", end, to);
    }
    check.Untouched(rank, "out", to);
  }
}

extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const auto bytes = [&](int sender) {
    double sum = 0;
    for (const std::int32_t size : call.In<std::int32_t>(sender, "sizes")) sum += 4.0 * size;
    return sum;
  };
  floor.ingress = bytes((rank + call.world() - 1) % call.world());
  floor.egress = bytes(rank);
}
