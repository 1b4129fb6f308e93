// Replays the sections in the order that the ranks report; the order itself must be fair.
#include <allranks/oracle.h>

#include <array>
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
  const auto world = static_cast<std::size_t>(call.world());
  std::array<std::uint32_t, 32> state{};
  for (std::size_t i = 0; i < rounds; ++i) {
    std::vector<int> order(world, -1);  // of the ranks in this round
    for (int rank = 0; rank < call.world(); ++rank) {
      const std::uint64_t place = check.Out<std::uint32_t>(rank, "place")[i];
      if (place / world != i || order[place % world] >= 0) {
        check.Wrong(rank, "place", i, "a free place of round " + std::to_string(i),
                    check.IsPoison(rank, "place", i) ? "never written" : std::to_string(place));
      } else {
        order[place % world] = rank;
      }
    }
    for (const int rank : order) {
      if (rank < 0) {  // its place is wrong, so what follows is not defined
        for (int r = 0; r < call.world(); ++r) check.Out<std::uint32_t>(r, "seen");
        return;
      }
      check.ExactAt<std::uint32_t>(rank, "seen", i * 32, state);
      const auto keys = call.In<std::uint32_t>(rank, "keys").subspan(i * 128, 128);
      std::array<std::uint32_t, 32> next{};
      for (std::size_t j = 0; j < 32; ++j) {
        next[j] = state[(j + 1) % 32];
        for (std::size_t k = 0; k < 4; ++k) next[j] += Mix(state[j] + keys[k * 32 + j]);
      }
      state = next;
    }
  }
}
