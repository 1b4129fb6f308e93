// The storage formats of oracles, over all bit patterns and all boundaries of rounding.
#include <gtest/gtest.h>

#include <cmath>

#include "allranks/oracle/formats.h"

namespace allranks::oracle {
namespace {

// The value by the definition of a binary format: sign, exponent, mantissa.
double Defined(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

template <class T>
void EveryPattern(int exponent_bits, int mantissa_bits) {
  for (int i = 0; i < 65536; ++i) {
    const T x{static_cast<std::uint16_t>(i)};
    const double expected = Defined(x.bits, exponent_bits, mantissa_bits);
    const double value = ToDouble(x);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << std::hex << i;
      ASSERT_TRUE(std::isnan(ToDouble(FromDouble<T>(value)))) << std::hex << i;
      continue;
    }
    ASSERT_EQ(value, expected) << std::hex << i;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << std::hex << i;
    ASSERT_EQ(FromDouble<T>(value).bits, i);
  }
}

// Between every two neighbours: the middle goes to the even one, all else to the nearer one.
template <class T>
void EveryBoundary(std::uint16_t infinity) {
  for (std::uint16_t i = 0; i < infinity; ++i) {
    const double low = ToDouble(T{i});
    double high = ToDouble(T{static_cast<std::uint16_t>(i + 1)});
    // What lies beyond the largest number is rounded as if there were a next one.
    if (i + 1 == infinity) high = 2 * low - ToDouble(T{static_cast<std::uint16_t>(i - 1)});
    const double middle = (low + high) / 2;
    const std::uint16_t even = i % 2 == 0 ? i : static_cast<std::uint16_t>(i + 1);
    ASSERT_EQ(FromDouble<T>(middle).bits, even) << i;
    ASSERT_EQ(FromDouble<T>(std::nextafter(middle, 0)).bits, i);
    ASSERT_EQ(FromDouble<T>(std::nextafter(middle, INFINITY)).bits, i + 1);
    ASSERT_EQ(FromDouble<T>(-middle).bits, even | 0x8000);
  }
  EXPECT_EQ(FromDouble<T>(1e300).bits, infinity);
  EXPECT_EQ(FromDouble<T>(-INFINITY).bits, infinity | 0x8000);
  EXPECT_EQ(FromDouble<T>(5e-324).bits, 0);
}

TEST(Formats, Bf16IsExactForEveryPattern) { EveryPattern<BF16>(8, 7); }
TEST(Formats, F16IsExactForEveryPattern) { EveryPattern<F16>(5, 10); }
TEST(Formats, Bf16RoundsToNearestEven) { EveryBoundary<BF16>(0x7f80); }
TEST(Formats, F16RoundsToNearestEven) { EveryBoundary<F16>(0x7c00); }

TEST(Formats, UnitsAreHalfTheDistanceToTheNextNumber) {
  EXPECT_EQ(1 + 2 * UnitOf(Type::kF32), ToDouble(std::nextafter(1.0f, 2.0f)));
  EXPECT_EQ(1 + 2 * UnitOf(Type::kBf16), ToDouble(BF16{0x3f81}));
  EXPECT_EQ(1 + 2 * UnitOf(Type::kF16), ToDouble(F16{0x3c01}));
  EXPECT_EQ(SmallestOf(Type::kBf16), ToDouble(BF16{1}));
  EXPECT_EQ(SmallestOf(Type::kF16), ToDouble(F16{1}));
}

}  // namespace
}  // namespace allranks::oracle
