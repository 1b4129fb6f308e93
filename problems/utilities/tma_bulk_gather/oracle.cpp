// Segments at the beginning of their rows; the rest of every row untouched.
#include <allranks/oracle.h>

#include <algorithm>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t m = call.Param("m"), width = call.Param("width");
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto source = call.In<std::uint32_t>(rank, "source");
    const auto start = call.In<std::uint32_t>(rank, "start");
    const auto length = call.In<std::uint32_t>(rank, "length");
    for (std::int64_t s = 0; s < m; ++s) {
      const auto pool = call.In<std::uint32_t>(static_cast<int>(source[s]), "pool");
      check.ExactAt<std::uint32_t>(rank, "out", s * width, pool.subspan(start[s], length[s]));
      check.Untouched(rank, "out", s * width + length[s], (s + 1) * width);
    }
  }
}

// Words that several segments share need to come once. More than the symmetric memory holds is read
// (entry, request, answer) or waits until there is room.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const auto source = call.In<std::uint32_t>(rank, "source");
  const auto start = call.In<std::uint32_t>(rank, "start");
  const auto length = call.In<std::uint32_t>(rank, "length");
  std::vector<std::uint64_t> all;  // segments by place, ranks one after the other
  std::int64_t words = 0, stored = 0;
  for (std::size_t s = 0; s < source.size(); ++s) {
    stored += length[s];
    if (static_cast<int>(source[s]) == rank) continue;
    all.push_back((std::uint64_t{source[s]} << 32 | start[s]) << 16 | length[s]);
  }
  std::sort(all.begin(), all.end());
  std::uint64_t end = 0;
  for (const std::uint64_t one : all) {
    const std::uint64_t from = one >> 16, to = from + (one & 0xffff);
    words += static_cast<std::int64_t>(std::max(to, end) - std::max(from, end));
    end = std::max(to, end);
  }
  floor.ingress = 4.0 * static_cast<double>(words);
  floor.hbm = 4.0 * static_cast<double>(stored);
  floor.hops = floor.ingress > 8192 ? 3 : words > 0 ? 1 : 0;
}
