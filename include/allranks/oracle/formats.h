// Storage formats of tensors on the host: F16 and BF16 as two bytes with exact conversions, and the
// facts of rounding that budgets need (bounds.h).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "allranks/oracle/abi.h"

namespace allranks::oracle {

struct F16 {
  std::uint16_t bits = 0;
};
struct BF16 {
  std::uint16_t bits = 0;
};

// --- to double: exact, for every bit pattern ---------------------------------------------------

inline double ToDouble(BF16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }

// The fields moved to where f32 has them are the value divided by 2^112, also for subnormals; only
// infinities and NaNs need their exponent repaired.
inline double ToDouble(F16 x) {
  const std::uint32_t magnitude = std::uint32_t{x.bits & 0x7fffu} << 13;
  const std::uint32_t sign = std::uint32_t{x.bits & 0x8000u} << 16;
  const float finite = std::bit_cast<float>(magnitude) * 0x1p112f;
  const float special = std::bit_cast<float>(magnitude | 0x7f800000u);
  const float value = magnitude >= 0x0f800000u ? special : finite;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

template <class T>
  requires std::is_arithmetic_v<T>
double ToDouble(T x) {
  return static_cast<double>(x);
}

// --- from double: rounded once, to nearest, ties to even ---------------------------------------

// A format with `kMantissa` stored bits below the leading one and least exponent `kLeast` of normal
// numbers, as bits of 16.
template <int kMantissa, int kLeast, int kExponentBits>
std::uint16_t Narrow(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  constexpr std::uint16_t kInfinity = ((1 << kExponentBits) - 1) << kMantissa;
  if (std::isnan(x)) return static_cast<std::uint16_t>(sign | kInfinity | 1 << (kMantissa - 1));
  const double magnitude = std::abs(x);
  if (magnitude == 0) return sign;
  if (std::isinf(x)) return static_cast<std::uint16_t>(sign | kInfinity);
  // In units of the last place at this magnitude; the scaling is exact, rounding is nearbyint's.
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  --exponent;
  if (exponent < kLeast) exponent = kLeast;
  const double units = std::nearbyint(std::ldexp(magnitude, kMantissa - exponent));
  // A carry out of the mantissa runs into the exponent field, as it should; too large is infinity.
  const std::uint64_t field = static_cast<std::uint64_t>(exponent - kLeast) << kMantissa;
  const std::uint64_t result = field + static_cast<std::uint64_t>(units);
  return static_cast<std::uint16_t>(sign | (result > kInfinity ? kInfinity : result));
}

template <class T>
T FromDouble(double x) {
  if constexpr (std::is_same_v<T, F16>) {
    return F16{Narrow<10, -14, 5>(x)};
  } else if constexpr (std::is_same_v<T, BF16>) {
    return BF16{Narrow<7, -126, 8>(x)};
  } else {
    return static_cast<T>(x);
  }
}

// --- types as values ---------------------------------------------------------------------------

template <class T>
constexpr Type TypeOf() {
  if constexpr (std::is_same_v<T, float>) return Type::kF32;
  if constexpr (std::is_same_v<T, F16>) return Type::kF16;
  if constexpr (std::is_same_v<T, BF16>) return Type::kBf16;
  if constexpr (std::is_same_v<T, double>) return Type::kF64;
  if constexpr (std::is_same_v<T, std::int8_t>) return Type::kI8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return Type::kU8;
  if constexpr (std::is_same_v<T, std::int32_t>) return Type::kI32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return Type::kU32;
  if constexpr (std::is_same_v<T, std::int64_t>) return Type::kI64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return Type::kU64;
}

// Calls `f` with a value of the C++ type that stores `type`.
template <class F>
decltype(auto) WithType(Type type, F&& f) {
  switch (type) {
    case Type::kF32:
      return f(float{});
    case Type::kF16:
      return f(F16{});
    case Type::kBf16:
      return f(BF16{});
    case Type::kF64:
      return f(double{});
    case Type::kI8:
      return f(std::int8_t{});
    case Type::kU8:
      return f(std::uint8_t{});
    case Type::kI32:
      return f(std::int32_t{});
    case Type::kU32:
      return f(std::uint32_t{});
    case Type::kI64:
      return f(std::int64_t{});
    case Type::kU64:
      break;
  }
  return f(std::uint64_t{});
}

constexpr std::uint64_t SizeOf(Type type) {
  constexpr std::uint8_t kSizes[] = {4, 2, 2, 8, 1, 1, 4, 4, 8, 8};
  return kSizes[static_cast<std::size_t>(type)];
}
constexpr const char* NameOf(Type type) {
  constexpr const char* kNames[] = {"f32", "f16", "bf16", "f64", "i8",
                                    "u8",  "i32", "u32",  "i64", "u64"};
  return kNames[static_cast<std::size_t>(type)];
}
constexpr bool IsFloat(Type type) { return type <= Type::kF64; }

// `count` elements as doubles. 64-bit integers are rounded.
inline void ToDoubles(Type type, const void* from, std::size_t count, double* to) {
  WithType(type, [&]<class T>(T) {
    const T* in = static_cast<const T*>(from);
    for (std::size_t i = 0; i < count; ++i) to[i] = ToDouble(in[i]);
  });
}

// Half the distance from 1 to the next number: rounding x changes it by at most this times |x|,
// or by half of SmallestOf where results are subnormal. 0: integers are not rounded.
constexpr double UnitOf(Type type) {
  switch (type) {
    case Type::kF32:
      return 0x1p-24;
    case Type::kF16:
      return 0x1p-11;
    case Type::kBf16:
      return 0x1p-8;
    case Type::kF64:
      return 0x1p-53;
    default:
      return 0;
  }
}
// The smallest positive number.
constexpr double SmallestOf(Type type) {
  switch (type) {
    case Type::kF32:
      return 0x1p-149;
    case Type::kF16:
      return 0x1p-24;
    case Type::kBf16:
      return 0x1p-133;
    case Type::kF64:
      return std::numeric_limits<double>::denorm_min();
    default:
      return 0;
  }
}

}  // namespace allranks::oracle
