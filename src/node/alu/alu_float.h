// Floating-point helpers of the kernels: NaNs, flushing, rounding, 16-bit formats.
// Included only by alu_kernels_*.cpp (see alu_lanes.h). Everything is made of IEEE operations that
// have one right result, without contraction, so all instruction sets give the same bits. The
// compiler may exchange operands of a sum, hence NaNs are always replaced by a definite one.
#pragma once

#include "node/alu/alu_lanes.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

inline u32 Bits(float v) { return __builtin_bit_cast(u32, v); }
inline u64 Bits(double v) { return __builtin_bit_cast(u64, v); }
inline float Float(u32 v) { return __builtin_bit_cast(float, v); }
inline double Double(u64 v) { return __builtin_bit_cast(double, v); }

constexpr u32 kNanF32 = 0x7fffffff;
constexpr u64 kNanF64 = 0xfff8000000000000;
constexpr u64 kQuietF64 = 0x0008000000000000;
constexpr u32 kNanF16 = 0x7fff;
constexpr u32 kNanBf16 = 0x7fff;

// f32 has one NaN, whatever the operands were.
inline float Canonical(float r) { return r == r ? r : Float(kNanF32); }

// f64 keeps the payload of its first NaN operand. (Selections among values that are all computed:
// those vectorise on every instruction set.)
inline u64 NanOr(double v, u64 otherwise) {
  const u64 quiet = Bits(v) | kQuietF64;
  return v != v ? quiet : otherwise;
}
inline double OrNan(double r, u64 nan) { return Double(r == r ? Bits(r) : nan); }
inline double Canonical(double r, double a) { return OrNan(r, NanOr(a, kNanF64)); }
inline double Canonical(double r, double a, double b) {
  return OrNan(r, NanOr(a, NanOr(b, kNanF64)));
}
inline double Canonical(double r, double a, double b, double c) {
  return OrNan(r, NanOr(a, NanOr(b, NanOr(c, kNanF64))));
}

inline float Flush(float v) {
  const u32 b = Bits(v);
  return Float((b & 0x7f800000) == 0 ? b & 0x80000000 : b);
}
template <bool kFlush>
inline float FlushIf(float v) {
  return kFlush ? Flush(v) : v;
}
inline float FlushIf(bool flush, float v) { return flush ? Flush(v) : v; }

// [0, 1]; NaN and -0 give +0.
inline float Saturate(float v) { return v > 0 ? (v < 1 ? v : 1.0f) : 0.0f; }
inline double Saturate(double v) { return v > 0 ? (v < 1 ? v : 1.0) : 0.0; }

// x + y rounded to odd: a later rounding to two or more bits less is then as if from the exact sum.
template <class F>
inline F AddOdd(F x, F y) {
  const F sum = x + y;
  const F y_part = sum - x;
  const F error = (x - (sum - y_part)) + (y - y_part);
  const auto b = Bits(sum);
  const bool inexact = error > 0 || error < 0;  // false for NaN, which infinities give
  const bool away = (error > 0) == (sum > 0);
  const auto odd = away ? b + 1 : b - 1;
  return __builtin_bit_cast(F, inexact && (b & 1) == 0 ? odd : b);
}

// double to float, rounded to odd.
inline float ToFloatOdd(double x) {
  const float f = static_cast<float>(x);
  const double g = f;
  const u32 b = Bits(f);
  const double ax = __builtin_fabs(x), ag = __builtin_fabs(g);
  const u32 truncated = ag > ax ? b - 1 : b;
  return Float(ag == ax || x != x ? b : truncated | 1);
}

// double to float in a direction.
inline float ToFloat(double x, u32 rounding) {
  const float f = static_cast<float>(x);
  const double g = f;
  const u32 b = Bits(f);
  const bool negative = (b >> 31) != 0;
  const bool down = rounding == kRm || (rounding == kRz && !negative);
  const bool up = rounding == kRp || (rounding == kRz && negative);
  u32 r = b;
  if (down && g > x) r = negative ? b + 1 : b - 1;
  if (up && g < x) r = negative ? b - 1 : b + 1;
  return Float(r);
}

#ifdef __FMA__
inline float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double Fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
// The product of two floats is exact in double.
inline float Fma(float a, float b, float c) {
  return static_cast<float>(AddOdd(static_cast<double>(a) * b, static_cast<double>(c)));
}
// Correctly rounded by definition, so the C library's is as good as an instruction.
inline double Fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#endif

// --- 16-bit formats, as the low bits of a u32 ---------------------------------------------------
inline float FromHalf(u32 h) {
  const u32 sign = (h & 0x8000) << 16, magnitude = h & 0x7fff;
  const float subnormal = static_cast<float>(static_cast<s32>(magnitude)) * 0x1p-24f;
  const u32 normal = (magnitude << 13) + (112u << 23);
  u32 r = magnitude < 0x400 ? Bits(subnormal) : normal;
  r = magnitude == 0x7c00 ? 0x7f800000 : r;
  r |= sign;
  return Float(magnitude > 0x7c00 ? kNanF32 : r);
}
inline u32 ToHalf(float f) {
  const u32 b = Bits(f), sign = (b >> 16) & 0x8000, magnitude = b & 0x7fffffff;
  const u32 normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // One unit of 0.5 is one unit of a subnormal half: the addition rounds.
  const u32 subnormal = Bits(Float(magnitude) + 0.5f) - 0x3f000000;
  u32 r = magnitude < 0x38800000 ? subnormal : normal;
  r = magnitude >= 0x477ff000 ? 0x7c00 : r;
  return magnitude > 0x7f800000 ? kNanF16 : r | sign;
}
inline float FromBf16(u32 h) {
  const u32 b = h << 16;
  return Float((b & 0x7fffffff) > 0x7f800000 ? kNanF32 : b);
}
inline u32 ToBf16(float f) {
  const u32 b = Bits(f);
  const u32 r = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
  return (b & 0x7fffffff) > 0x7f800000 ? kNanBf16 : r;
}

struct F16 {
  using Value = float;
  using Element = u32;
  static Value Load(Element e) { return FromHalf(e & 0xffff); }
  static Element Store(Value v) { return ToHalf(v); }
};
struct BF16 {
  using Value = float;
  using Element = u32;
  static Value Load(Element e) { return FromBf16(e & 0xffff); }
  static Element Store(Value v) { return ToBf16(v); }
};

}  // namespace
}  // namespace allranks::node::alu::ALLRANKS_ISA
