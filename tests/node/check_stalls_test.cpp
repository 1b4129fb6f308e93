// What a schedule stalls, by itself; that programs show it is tested by tests/litmus.
#include "node/state/stalls.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace allranks::node::check {
namespace {

using Where = std::tuple<int, std::uint64_t, std::uint32_t, std::uint32_t, Time>;

// Blocks of two warps that go through a loop of ten instructions.
std::vector<Where> Drawn(std::uint64_t seed, std::uint64_t blocks) {
  Stalls stalls;
  stalls.SetSeed(seed);
  std::vector<Where> seen;
  for (int launch = 0; launch < 40; ++launch) {
    const std::uint64_t key = stalls.OfLaunch();
    for (std::uint64_t block = 0; block < blocks; ++block) {
      Stall stall = stalls.OfBlock(key, block, blocks);
      for (int round = 0; round < 100; ++round)
        for (std::uint32_t pc = 0; pc < 10; ++pc)
          for (std::uint32_t warp = 0; warp < 2; ++warp)
            if (const Time late = stall.At(pc, warp); late != 0)
              seen.emplace_back(launch, block, pc, warp, late);
    }
  }
  return seen;
}

TEST(StallsTest, NothingUnderScheduleZero) { EXPECT_TRUE(Drawn(0, 16).empty()); }

TEST(StallsTest, TheSameSeedStallsTheSame) {
  EXPECT_EQ(Drawn(7, 16), Drawn(7, 16));
  EXPECT_NE(Drawn(7, 16), Drawn(8, 16));
}

TEST(StallsTest, ABlockStallsOnceAndFewDo) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Where> seen = Drawn(seed, 64);
    EXPECT_FALSE(seen.empty());
    EXPECT_LT(seen.size(), 40u * 64 / 6);
    for (std::size_t i = 1; i < seen.size(); ++i)
      EXPECT_NE(std::tie(std::get<0>(seen[i]), std::get<1>(seen[i])),
                std::tie(std::get<0>(seen[i - 1]), std::get<1>(seen[i - 1])));
  }
}

TEST(StallsTest, EveryPlaceAndMagnitudeComesUp) {
  std::vector<int> places(20), magnitudes(9);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    for (const auto& [launch, block, pc, warp, late] : Drawn(seed, 4)) {
      ++places[pc * 2 + warp];
      ASSERT_GE(late, Us(2));
      ASSERT_LT(late, Us(1024));
      int magnitude = 0;
      while (late >= Us(4) << magnitude) ++magnitude;
      ++magnitudes[static_cast<std::size_t>(magnitude)];
    }
  }
  for (const int count : places) EXPECT_GT(count, 0);
  for (const int count : magnitudes) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace allranks::node::check
