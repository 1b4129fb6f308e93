// CHECKs stay on in every build and say where, what and which values.
#include "base/check.h"

#include <gtest/gtest.h>

namespace {

enum class Colour { kRed = 3, kBlue = 4 };

TEST(CheckDeathTest, PrintsPlaceConditionAndDetail) {
  int warps = 65;
  EXPECT_DEATH(CHECK(warps <= 64, "{} warps", warps),
               "check_test.cpp:[0-9]+: CHECK\\(warps <= 64\\) failed: 65 warps");
}

TEST(CheckDeathTest, PrintsBothSidesOfAComparison) {
  int a = 1;
  EXPECT_DEATH(CHECK_EQ(a, 2), "CHECK\\(a == 2\\) failed: 1 against 2");
  EXPECT_DEATH(CHECK_EQ(Colour::kRed, Colour::kBlue), "3 against 4");
}

TEST(CheckTest, EvaluatesEachOperandOnce) {
  int calls = 0;
  auto next = [&] { return ++calls; };
  CHECK_EQ(next(), 1);
  CHECK(next() == 2);
  EXPECT_EQ(calls, 2);
}

TEST(CheckTest, IsOneStatement) {
  if (true)
    CHECK(true);
  else
    CHECK(false);
}

}  // namespace
