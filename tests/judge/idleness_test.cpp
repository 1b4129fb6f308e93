// What hangs is told from what only has to wait for the processor.
#include "judge/idleness.h"

#include <gtest/gtest.h>

namespace allranks::judge {
namespace {

using std::chrono::seconds;

TEST(Idleness, WhoGetsALittleTimeIsNotIdle) {
  const Idleness::Clock::time_point begin{};
  Idleness idle(begin);
  double used = 0;
  for (int s = 1; s <= 600; ++s) {
    used += 0.02;  // a fiftieth of a busy machine
    EXPECT_LE(idle.For(begin + seconds(s), used), seconds(1)) << s;
  }
}

TEST(Idleness, WhoDoesNothingIs) {
  const Idleness::Clock::time_point begin{};
  Idleness idle(begin);
  EXPECT_EQ(idle.For(begin + seconds(1), 0.5), seconds(0));
  for (int s = 2; s <= 60; ++s)
    EXPECT_EQ(idle.For(begin + seconds(s), 0.5 + 1e-4 * s), seconds(s - 1)) << s;
}

}  // namespace
}  // namespace allranks::judge
