// Sizes in problem.toml: values, precedence, and what is refused instead of wrapped.
#include "problem/expression.h"

#include <gtest/gtest.h>

namespace allranks::problem {
namespace {

const Values kValues = {{"world", 8}, {"n", 1000}, {"sizeof(T)", 2}, {"none", 0}};

std::int64_t Value(const char* text) {
  const auto expression = Expression::Parse(text, kValues);
  EXPECT_TRUE(expression) << text << ": " << expression.error().message;
  if (!expression) return -999;
  const auto value = expression->Evaluate(kValues);
  EXPECT_TRUE(value) << text << ": " << value.error().message;
  return value.value_or(-999);
}

std::string Refusal(const std::string& text) {
  const auto expression = Expression::Parse(text, kValues);
  if (!expression) return expression.error().message;
  const auto value = expression->Evaluate(kValues);
  return value ? "" : value.error().message;
}

TEST(ExpressionTest, ValuesFollowTheRulesOfArithmetic) {
  EXPECT_EQ(Value("1 + 2 * 3 - 4"), 3);
  EXPECT_EQ(Value("(1 + 2) * 3"), 9);
  EXPECT_EQ(Value("100 / 7 / 2"), 7);
  EXPECT_EQ(Value("100 - 7 - 2"), 91);
  EXPECT_EQ(Value("100 % 7"), 2);
  EXPECT_EQ(Value("-n + --n"), 0);
  EXPECT_EQ(Value("2*n*sizeof(T) + 65536"), 69536);
  EXPECT_EQ(Value("sizeof(f64) + sizeof( bf16 )"), 10);
  EXPECT_EQ(Value("ceil_div(n, world + 1)"), 112);
  EXPECT_EQ(Value("ceil_div(n, world)"), 125);
  EXPECT_EQ(Value("min(n, world) + max(n, world)"), 1008);
  EXPECT_EQ(Value("log2_ceil(1)"), 0);
  EXPECT_EQ(Value("log2_ceil(world)"), 3);
  EXPECT_EQ(Value("log2_ceil(world + 1)"), 4);
  EXPECT_EQ(Value("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(Value("-9223372036854775807 - 1"), INT64_MIN);
}

TEST(ExpressionTest, WhatDoesNotFitIsAnErrorAndNeverWraps) {
  for (const char* text : {"9223372036854775808", "9223372036854775807 + 1",
                           "-9223372036854775807 - 2", "9223372036854775807 * 2",
                           "(-9223372036854775807 - 1) / -1", "-(-9223372036854775807 - 1)"}) {
    EXPECT_NE(Refusal(text).find("fit in 64 bits"), std::string::npos) << text << Refusal(text);
  }
  EXPECT_EQ(Value("(-9223372036854775807 - 1) % -1"), 0);
  for (const char* text : {"n / none", "n % none", "ceil_div(n, none)"})
    EXPECT_NE(Refusal(text).find("divides by zero"), std::string::npos) << text;
  EXPECT_NE(Refusal("log2_ceil(none)").find("log2_ceil of 0"), std::string::npos);
}

TEST(ExpressionTest, MessagesNameThePlace) {
  EXPECT_NE(Refusal("2*m").find("'m' is unknown; known are n, none, sizeof(T), world"),
            std::string::npos)
      << Refusal("2*m");
  EXPECT_NE(Refusal("sizeof(U)").find("'sizeof(U)' is unknown"), std::string::npos);
  EXPECT_NE(Refusal("n +").find("ends too early"), std::string::npos);
  EXPECT_NE(Refusal("(n").find("expected )"), std::string::npos);
  EXPECT_NE(Refusal("n n").find("at 'n'"), std::string::npos);
  EXPECT_NE(Refusal("min(n)").find("min takes 2 arguments"), std::string::npos);
  EXPECT_NE(Refusal("pow(n, 2)").find("no function 'pow'"), std::string::npos);
  EXPECT_NE(Refusal("").find("ends too early"), std::string::npos);
  EXPECT_NE(Refusal(std::string(1000, '(')).find("nested too deeply"), std::string::npos);
  EXPECT_NE(Refusal(std::string(1000, '-') + "1").find("nested too deeply"), std::string::npos);
  EXPECT_NE(Refusal(std::string(10'000, ' ')).find("too long"), std::string::npos);
}

TEST(ExpressionTest, AnEmptyOneIsZero) {
  EXPECT_TRUE(Expression().empty());
  EXPECT_EQ(Expression().Evaluate({}).value(), 0);
}

}  // namespace
}  // namespace allranks::problem
