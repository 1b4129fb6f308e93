// What an instruction should compute, written from the PTX ISA and not as the handlers are:
// integers in 128-bit arithmetic, floats by the processor's rounding modes, small formats by
// searching the table of their values. One function per family; reference.cpp asks them in turn.
#pragma once

#include <cfenv>
#include <cstdint>
#include <cstring>
#include <functional>

#include "alu/forms.h"

namespace allranks::node::alu_test {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

template <class To, class From>
To Bits(From v) {
  static_assert(sizeof(To) == sizeof(From));
  To r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}

struct Model {
  // From the sources in the order of the text (negations of predicates applied; a 128-bit register
  // is two values, the low half first; the carry comes last) to the destinations, likewise.
  std::function<void(const u64* s, u64* d)> compute;
  // For approximations instead of `compute`: whether `got` is within the documented error.
  std::function<bool(const u64* s, u64 got)> accept;
  int rounding = FE_TONEAREST;  // in force while `compute` runs
};

// Each returns false if the instruction is not of its family.
bool IntegerModel(const Line& line, Model* model);
bool BitModel(const Line& line, Model* model);
bool MoveModel(const Line& line, Model* model);
bool FloatModel(const Line& line, Model* model);
bool HalfModel(const Line& line, Model* model);
bool ApproximateModel(const Line& line, Model* model);
bool CompareModel(const Line& line, Model* model);
bool ConvertModel(const Line& line, Model* model);
bool SmallFloatModel(const Line& line, Model* model);
bool VideoModel(const Line& line, Model* model);

// --- types --------------------------------------------------------------------------------------
struct Ty {
  int bits = 0;
  char kind = 0;  // u, s, b, f, B (bf16), p
  int count = 1;  // 2: packed
  bool integer() const { return kind == 'u' || kind == 's' || kind == 'b'; }
  bool is_signed() const { return kind == 's'; }
};
inline Ty TypeOf(const std::string& word) {
  Ty t;
  std::string w = word;
  if (w.size() > 2 && w.substr(w.size() - 2) == "x2") {
    t.count = 2;
    w = w.substr(0, w.size() - 2);
  }
  if (w.substr(0, 2) == "bf") {
    t.kind = 'B';
    w = w.substr(1);
  } else {
    t.kind = w[0];
  }
  t.bits = std::atoi(w.c_str() + 1);
  return t;
}

inline u64 Mask(int bits) { return bits >= 64 ? ~u64{0} : (u64{1} << bits) - 1; }
// The low bits as a number.
inline s128 Number(u64 v, int bits, bool is_signed) {
  const s128 low = static_cast<s128>(v & Mask(bits));
  return is_signed && (low >> (bits - 1)) != 0 ? low - (s128{1} << bits) : low;
}
inline s128 Number(u64 v, const Ty& t) { return Number(v, t.bits, t.is_signed()); }
inline u64 Wrapped(s128 v, int bits) { return static_cast<u64>(v) & Mask(bits); }
inline s128 Lowest(int bits, bool is_signed) { return is_signed ? -(s128{1} << (bits - 1)) : 0; }
inline s128 Highest(int bits, bool is_signed) {
  return (s128{1} << (is_signed ? bits - 1 : bits)) - 1;
}
inline s128 Clamped(s128 v, int bits, bool is_signed) {
  const s128 low = Lowest(bits, is_signed), high = Highest(bits, is_signed);
  return v < low ? low : v > high ? high : v;
}

// Applies f to each half of 32-bit words.
template <class F>
u64 BothHalves(F f, u64 a, u64 b = 0, u64 c = 0) {
  return (f(a & 0xffff, b & 0xffff, c & 0xffff) & 0xffff) |
         (f(a >> 16 & 0xffff, b >> 16 & 0xffff, c >> 16 & 0xffff) & 0xffff) << 16;
}

inline float FlushedSingle(float v) {
  const u32 b = Bits<u32>(v);
  return (b & 0x7f800000) == 0 ? Bits<float>(b & 0x80000000) : v;
}
// f32 has one NaN: "NaN results are 0x7fffffff" (PTX ISA, floating-point instructions, .f32).
inline u64 SingleResult(float v) { return v != v ? 0x7fffffff : Bits<u32>(v); }
inline float SaturatedSingle(float v) { return !(v > 0) ? 0.0f : v > 1 ? 1.0f : v; }

// .ftz flushes what is below 2^-126 once rounded to 24 bits as if exponents had no lower bound: the
// toolkit's assembler folds mul.ftz(0x00ffffff, 0.5) to 0 and mul.ftz(0x00800001, 0x3f7ffffe) to
// 0x00800000.
template <class Real>
bool TinySingle(Real exact, int rounding) {
  const Real m = exact < 0 ? -exact : exact;
  const Real least = static_cast<Real>(0x1p-126), step = static_cast<Real>(0x1p-150);
  if (rounding == FE_TONEAREST) return m < least - step / 2;
  const bool away = rounding == (exact < 0 ? FE_DOWNWARD : FE_UPWARD);
  return away ? m <= least - step : m < least;
}

inline int RoundingOf(const Line& line) {
  return line.Has("rz") || line.Has("rzi")   ? FE_TOWARDZERO
         : line.Has("rm") || line.Has("rmi") ? FE_DOWNWARD
         : line.Has("rp") || line.Has("rpi") ? FE_UPWARD
                                             : FE_TONEAREST;
}

}  // namespace allranks::node::alu_test
