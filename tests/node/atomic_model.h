// What atomics must make of two values, in host arithmetic and the compiler's own small floats.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

namespace allranks::node::atomic_model {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

inline float Flushed(float v) {
  return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v;
}

inline u16 HalfAdd(u16 a, u16 b) {
  const auto r = static_cast<_Float16>(std::bit_cast<_Float16>(a) + std::bit_cast<_Float16>(b));
  return r != r ? 0x7fff : std::bit_cast<u16>(r);
}

inline float FromBf16(u16 v) { return std::bit_cast<float>(u32{v} << 16); }
inline u16 ToBf16(float v) {
  if (std::isnan(v)) return 0x7fff;
  const u32 b = std::bit_cast<u32>(v);
  return static_cast<u16>((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
inline u16 Bf16Add(u16 a, u16 b) { return ToBf16(FromBf16(a) + FromBf16(b)); }

// IEEE 754 minimum and maximum that prefer numbers over NaN.
template <class F>
u16 HalfExtreme(u16 a, u16 b, bool minimum, F number) {
  const float x = number(a), y = number(b);
  if (std::isnan(x) && std::isnan(y)) return 0x7fff;
  if (std::isnan(x)) return b;
  if (std::isnan(y)) return a;
  if (x == y) return minimum == std::signbit(x) ? a : b;  // -0 is less than +0
  return (x < y) == minimum ? a : b;
}
inline float FromHalf(u16 v) { return static_cast<float>(std::bit_cast<_Float16>(v)); }

inline u32 FloatAdd(u32 a, u32 b, bool flush) {
  float x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
  if (flush) {
    x = Flushed(x);
    y = Flushed(y);
  }
  float r = x + y;
  if (flush) r = Flushed(r);
  return std::isnan(r) ? 0x7fffffff : std::bit_cast<u32>(r);
}

// The new value of `a` after `op` with operand `b` (and `c`, of cas).
inline u64 Expected(const std::string& op, const std::string& type, u64 a, u64 b, u64 c,
                    bool global) {
  const auto halves = [&](auto f) {
    return u64{f(static_cast<u16>(a), static_cast<u16>(b))} |
           u64{f(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16))} << 16;
  };
  const bool minimum = op == "min";
  const auto extreme_half = [&](u16 x, u16 y) { return HalfExtreme(x, y, minimum, FromHalf); };
  const auto extreme_bf16 = [&](u16 x, u16 y) { return HalfExtreme(x, y, minimum, FromBf16); };
  if (op == "exch") return b;
  if (op == "cas") return a == b ? c : a;
  if (op == "and") return a & b;
  if (op == "or") return a | b;
  if (op == "xor") return a ^ b;
  if (op == "inc") return a >= b ? 0 : a + 1;
  if (op == "dec") return a == 0 || a > b ? b : a - 1;
  if (type == "f32") return FloatAdd(static_cast<u32>(a), static_cast<u32>(b), global);
  if (type == "f64") {
    const double x = std::bit_cast<double>(a), y = std::bit_cast<double>(b);
    if (std::isnan(x)) return a | u64{1} << 51;
    if (std::isnan(y)) return b | u64{1} << 51;
    const double r = x + y;
    return std::isnan(r) ? 0xfff8000000000000 : std::bit_cast<u64>(r);
  }
  if (op == "add") {
    if (type == "f16") return HalfAdd(static_cast<u16>(a), static_cast<u16>(b));
    if (type == "bf16") return Bf16Add(static_cast<u16>(a), static_cast<u16>(b));
    if (type == "f16x2") return halves(HalfAdd);
    if (type == "bf16x2") return halves(Bf16Add);
    return type.ends_with("32") ? static_cast<u32>(a + b) : a + b;
  }
  if (type == "f16") return extreme_half(static_cast<u16>(a), static_cast<u16>(b));
  if (type == "bf16") return extreme_bf16(static_cast<u16>(a), static_cast<u16>(b));
  if (type == "f16x2") return halves(extreme_half);
  if (type == "bf16x2") return halves(extreme_bf16);
  bool less = a < b;
  if (type == "s32") less = static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b);
  if (type == "s64") less = static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
  return less == minimum ? a : b;
}

inline int BitsOf(const std::string& type) {
  if (type == "f16" || type == "bf16" || type == "b16") return 16;
  return type.ends_with("64") ? 64 : 32;
}

}  // namespace allranks::node::atomic_model
