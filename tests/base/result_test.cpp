// Results carry a value or a message, and pass from one type to another.
#include "base/result.h"

#include <gtest/gtest.h>

namespace allranks {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Fail("{} is odd", n);
  return n / 2;
}

Result<std::string> HalfAsText(int n) {
  Result<int> half = Half(n);
  if (!half) return Fail(half.error());
  return std::to_string(*half);
}

TEST(ResultTest, HoldsAValueOrAMessage) {
  EXPECT_EQ(Half(8).value(), 4);
  ASSERT_FALSE(Half(7).has_value());
  EXPECT_EQ(Half(7).error().message, "7 is odd");
}

TEST(ResultTest, PassesErrorsOn) {
  EXPECT_EQ(HalfAsText(8).value(), "4");
  EXPECT_EQ(HalfAsText(7).error().message, "7 is odd");
}

TEST(ResultTest, StatusHasNoValue) {
  EXPECT_TRUE(Ok().has_value());
  Status bad = Fail("no");
  EXPECT_FALSE(bad.has_value());
}

}  // namespace
}  // namespace allranks
