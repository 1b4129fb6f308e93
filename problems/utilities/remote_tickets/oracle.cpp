// Totals, and in each round a cover of all tickets by the ranges of all requests.
#include <allranks/oracle.h>

#include <string>
#include <vector>

using namespace allranks::oracle;

static std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

extern "C" void Verify(const Call& call, Check& check) {
  const auto rounds = static_cast<std::size_t>(call.Param("rounds"));
  const auto requests = static_cast<std::size_t>(call.Param("requests"));
  std::vector<std::uint32_t> totals;
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    const auto need = [&](int rank, std::size_t q) {
      return 1 + (Mix(call.In<std::uint32_t>(rank, "keys")[i * requests + q] + before) & 15);
    };
    std::uint32_t total = 0;
    for (int rank = 0; rank < call.world(); ++rank) {
      for (std::size_t q = 0; q < requests; ++q) total += need(rank, q);
    }
    // Ranges that stay inside, do not overlap and have this total leave no gap.
    std::vector<char> given(total, 0);
    for (int rank = 0; rank < call.world(); ++rank) {
      const auto first = check.Out<std::uint32_t>(rank, "first");
      for (std::size_t q = 0; q < requests; ++q) {
        const std::size_t index = i * requests + q, count = need(rank, q);
        const std::uint64_t begin = first[index];
        bool free = begin + count <= total;
        for (std::size_t t = 0; free && t < count; ++t) free = given[begin + t] == 0;
        if (!free) {
          check.Wrong(
              rank, "first", index,
              "a free range of " + std::to_string(count) + " tickets below " +
                  std::to_string(total),
              check.IsPoison(rank, "first", index) ? "never written" : std::to_string(begin));
          continue;
        }
        for (std::size_t t = 0; t < count; ++t) given[begin + t] = 1;
      }
    }
    totals.push_back(total);
    before = total;
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Exact(rank, "total", totals);
}
