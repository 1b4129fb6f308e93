// The tokens of one call, step by step.
#include <allranks/oracle.h>

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
  std::vector<std::uint32_t> made[2];
  std::uint32_t token = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    for (int rank = 0; rank < 2; ++rank) {
      const auto row = call.In<std::uint32_t>(rank, "keys").subspan(i * 32, 32);
      std::uint32_t next = 0;
      for (const std::uint32_t key : row) next += Mix(token + key);
      made[rank].push_back(token = next);
    }
  }
  for (int rank = 0; rank < 2; ++rank) check.Exact(rank, "out", made[rank]);
}
