// Numbers in one exact form (sign, exponent, 64-bit mantissa), made from any format and rounded to
// any other: what the conversions that are not worth a vectorised loop go through.
// Included only by alu_slow_*.cpp (see alu_lanes.h).
#pragma once

#include "node/alu/alu_lanes.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

struct Format {
  int mantissa;  // explicit bits
  int exponent;
  enum class Top : u8 {
    kInfinities,  // the highest exponent has infinities and NaNs
    kOneNan,      // e4m3: it has numbers, and one NaN per sign
    kNumbers,     // e2m3, e3m2, e2m1: it has numbers only
  };
  Top top = Top::kInfinities;
};
constexpr Format kFormatF16{10, 5}, kFormatBf16{7, 8}, kFormatF32{23, 8}, kFormatF64{52, 11},
    kFormatTf32{10, 8};

// mantissa * 2^(exponent - 63); the mantissa's top bit is set unless it is zero.
struct Exact {
  u64 mantissa = 0;
  int exponent = 0;
  bool negative = false, nan = false, infinite = false;
};

inline Exact Normalised(bool negative, u64 mantissa, int exponent) {
  Exact r;
  r.negative = negative;
  if (mantissa == 0) return r;
  const int shift = __builtin_clzll(mantissa);
  r.mantissa = mantissa << shift;
  r.exponent = exponent - shift;
  return r;
}

inline Exact Decode(u64 bits, Format format) {
  const u64 fraction = bits & ((u64{1} << format.mantissa) - 1);
  const u32 top = (1u << format.exponent) - 1;
  const u32 biased = static_cast<u32>(bits >> format.mantissa) & top;
  const bool negative = ((bits >> (format.mantissa + format.exponent)) & 1) != 0;
  const int bias = (1 << (format.exponent - 1)) - 1;
  if (biased == top && format.top != Format::Top::kNumbers) {
    const bool all_ones = fraction == (u64{1} << format.mantissa) - 1;
    if (format.top == Format::Top::kInfinities || all_ones) {
      Exact r;
      r.negative = negative;
      r.nan = fraction != 0;
      r.infinite = fraction == 0;
      return r;
    }
  }
  const u64 hidden = biased == 0 ? 0 : u64{1} << format.mantissa;
  const int exponent = (biased == 0 ? 1 : static_cast<int>(biased)) - bias - format.mantissa + 63;
  return Normalised(negative, hidden | fraction, exponent);
}

// What is cut off when a mantissa loses its last `shift` bits, and what stays.
struct Cut {
  u64 kept = 0, rest = 0, half = 0;
};
inline Cut CutOff(u64 mantissa, int shift) {
  Cut c;
  if (shift <= 0) {
    c.kept = mantissa;
    c.half = 1;
  } else if (shift < 64) {
    c.kept = mantissa >> shift;
    c.half = u64{1} << (shift - 1);
    c.rest = mantissa & ((c.half << 1) - 1);
  } else if (shift == 64) {
    c.rest = mantissa;
    c.half = u64{1} << 63;
  } else {
    c.rest = mantissa != 0 ? 1 : 0;
    c.half = 2;
  }
  return c;
}
inline bool RoundsUp(u32 rounding, bool negative, const Cut& c) {
  switch (rounding) {
    case kRn:
      return c.rest > c.half || (c.rest == c.half && (c.kept & 1) != 0);
    case kRna:
      return c.rest >= c.half;
    case kRm:
      return negative && c.rest != 0;
    case kRp:
      return !negative && c.rest != 0;
    default:
      return false;
  }
}

// Random bits of .rs: `count` of them, added to the first bits that are cut off; the carry rounds
// away from zero.
struct RandomBits {
  u32 bits = 0;
  int count = 0;
};
inline bool CarriesUp(u64 mantissa, int shift, RandomBits random) {
  if (shift <= 0 || shift > 64 + random.count) return false;
  const u128 one = 1;
  const u128 rest = u128{mantissa} & ((one << shift) - 1);
  const u128 added = shift >= random.count ? u128{random.bits} << (shift - random.count)
                                           : u128{random.bits} >> (random.count - shift);
  return ((rest + added) >> shift) != 0;
}

inline u64 NanOf(Format format) {
  if (format.mantissa == 52) return 0x7fffffffffffffff;
  return (u64{1} << (format.mantissa + format.exponent)) - 1;
}

// The largest number of formats without a NaN stands for it.
inline u64 Encode(const Exact& x, Format format, u32 rounding, bool satfinite,
                  RandomBits random = {}) {
  if (x.nan) return NanOf(format);
  const u64 all = (u64{1} << (format.mantissa + format.exponent)) - 1;
  const u64 sign = x.negative ? all + 1 : 0;
  const u64 infinity = ((u64{1} << format.exponent) - 1) << format.mantissa;
  const u64 largest = format.top == Format::Top::kInfinities ? infinity - 1
                      : format.top == Format::Top::kOneNan   ? all - 1
                                                             : all;
  const u64 overflow = satfinite || format.top == Format::Top::kNumbers ? largest
                       : format.top == Format::Top::kOneNan             ? all
                                                                        : infinity;
  if (x.infinite) return sign | overflow;
  if (x.mantissa == 0) return sign;
  const int bias = (1 << (format.exponent - 1)) - 1;
  int shift = 63 - format.mantissa;
  int biased = x.exponent + bias;
  if (biased < 1) {
    shift += 1 - biased;
    biased = 1;
  }
  const Cut cut = CutOff(x.mantissa, shift);
  const bool up =
      rounding == kRs ? CarriesUp(x.mantissa, shift, random) : RoundsUp(rounding, x.negative, cut);
  const u64 kept = cut.kept + (up ? 1 : 0);
  const u64 r = (static_cast<u64>(biased - 1) << format.mantissa) + kept;
  if (r > largest || biased > (1 << format.exponent)) {
    const bool away = rounding == kRn || rounding == kRna || rounding == kRs ||
                      (rounding == kRm && x.negative) || (rounding == kRp && !x.negative);
    return sign | (away ? overflow : largest);
  }
  return sign | r;
}

// .ftz of f32 operands, .relu and .sat, in this order; the result's own .ftz follows the encoding.
inline Exact Prepare(Exact x, u32 imm, bool from_f32) {
  if ((imm & kImmFtz) != 0 && from_f32 && !x.nan && !x.infinite && x.exponent < -126) {
    x.mantissa = 0;
  }
  if ((imm & kImmRelu) != 0 && x.negative && !x.nan) return Exact{};
  if ((imm & kImmSat) != 0) {
    if (x.nan || x.negative) return Exact{};
    if (x.infinite || (x.mantissa != 0 && x.exponent >= 0)) {
      return Normalised(false, u64{1} << 63, 0);
    }
  }
  return x;
}

// The magnitude rounded to an integer, for |x| < 2^64.
inline u128 IntegralMagnitude(const Exact& x, u32 rounding) {
  const Cut cut = CutOff(x.mantissa, 63 - x.exponent);
  return u128{cut.kept} + (RoundsUp(rounding, x.negative, cut) ? 1 : 0);
}

}  // namespace
}  // namespace allranks::node::alu::ALLRANKS_ISA
