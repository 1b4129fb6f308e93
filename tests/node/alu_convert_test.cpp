// cvt. Integers are expected through 128-bit arithmetic, floats through the processor's rounding
// modes, 128-bit floats and the tables of alu/formats.h.
#include <cfenv>
#include <cmath>
#include <limits>

#include "alu/formats.h"
#include "alu/harness.h"

namespace allranks::node::alu_test {
namespace {

__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

// Integer types as cvt sees them: 8-bit ones live in 16-bit registers.
struct IntType {
  const char* name;
  int bits;
  bool is_signed;
};
const IntType kInts[] = {{"u8", 8, false},   {"s8", 8, true},    {"u16", 16, false},
                         {"s16", 16, true},  {"u32", 32, false}, {"s32", 32, true},
                         {"u64", 64, false}, {"s64", 64, true}};

std::string Reg(int bits, int i) {
  return (bits <= 16 ? "%h" : bits == 32 ? "%r" : "%rd") + std::to_string(i);
}
u64 Raw(const Thread& t, int bits) { return bits <= 16 ? t.h[1] : bits == 32 ? t.r[1] : t.rd[1]; }
void Store(Thread* t, int bits, u64 v) {
  if (bits <= 16) t->h[0] = v & 0xffff;
  if (bits == 32) t->r[0] = v & 0xffffffff;
  if (bits == 64) t->rd[0] = v;
}
s128 ValueOf(const IntType& type, u64 raw) {
  s128 v = static_cast<s128>(static_cast<u128>(raw) & ((u128{1} << type.bits) - 1));
  if (type.is_signed && (v >> (type.bits - 1)) != 0) v -= s128{1} << type.bits;
  return v;
}
s128 Lowest(const IntType& t) { return t.is_signed ? -(s128{1} << (t.bits - 1)) : 0; }
s128 Highest(const IntType& t) { return (s128{1} << (t.is_signed ? t.bits - 1 : t.bits)) - 1; }

TEST(AluConvert, IntegerToInteger) {
  for (const IntType& to : kInts) {
    for (const IntType& from : kInts) {
      const std::string types = std::string(".") + to.name + "." + from.name + " ";
      const std::string operands = Reg(to.bits, 0) + ", " + Reg(from.bits, 1) + ";";
      Check(
          "cvt" + types + operands,
          [&](Thread* t) {
            Store(
                t, to.bits,
                static_cast<u64>(ValueOf(to, static_cast<u64>(ValueOf(from, Raw(*t, from.bits))))));
          },
          5000);
      Check(
          "cvt.sat" + types + operands,
          [&](Thread* t) {
            const s128 v = ValueOf(from, Raw(*t, from.bits));
            Store(t, to.bits, static_cast<u64>(std::min(std::max(v, Lowest(to)), Highest(to))));
          },
          5000);
      if (HasFatalFailure()) return;
    }
  }
}

// nvcc sign-extends within a register: the source's register may be wider than its type, and so may
// the result's, which is then extended.
TEST(AluConvert, RegistersWiderThanTheirTypes) {
  Check("cvt.s64.s32 %rd0, %rd1;",
        [](Thread* t) { t->rd[0] = static_cast<u64>(s64{static_cast<s32>(t->rd[1])}); });
  Check("cvt.s64.s8 %rd0, %rd1;",
        [](Thread* t) { t->rd[0] = static_cast<u64>(s64{static_cast<s8>(t->rd[1])}); });
  Check("cvt.u64.u16 %rd0, %rd1;", [](Thread* t) { t->rd[0] = t->rd[1] & 0xffff; });
  Check("cvt.s32.s16 %r0, %r1;",
        [](Thread* t) { t->r[0] = static_cast<u32>(s32{static_cast<s16>(t->r[1])}); });
  Check("cvt.s32.s8 %r0, %h1;",
        [](Thread* t) { t->r[0] = static_cast<u32>(s32{static_cast<s8>(t->h[1])}); });
  Check("cvt.s8.s32 %r0, %r1;",
        [](Thread* t) { t->r[0] = static_cast<u32>(s32{static_cast<s8>(t->r[1])}); });
  Check("cvt.s8.s32 %h0, %r1;",
        [](Thread* t) { t->h[0] = static_cast<u16>(static_cast<s8>(t->r[1])); });
  Check("cvt.u8.u32 %r0, %r1;", [](Thread* t) { t->r[0] = t->r[1] & 0xff; });
  Check("cvt.s32.s32 %rd0, %r1;",
        [](Thread* t) { t->rd[0] = static_cast<u64>(s64{static_cast<s32>(t->r[1])}); });
}

const struct {
  const char* word;
  const char* integral;
  int mode;
  Mode table;
} kRoundings[] = {{"rn", "rni", FE_TONEAREST, Mode::kNearest},
                  {"rz", "rzi", FE_TOWARDZERO, Mode::kZero},
                  {"rm", "rmi", FE_DOWNWARD, Mode::kDown},
                  {"rp", "rpi", FE_UPWARD, Mode::kUp}};

double FlushedSingle(double v) {
  return v != 0 && std::fabs(v) < 0x1p-126 ? std::copysign(0.0, v) : v;
}

double IntegralPart(double v, int mode) {
  volatile double x = v;
  std::fesetround(mode);
  volatile double r = std::nearbyint(x);
  std::fesetround(FE_TONEAREST);
  return r;
}

// Saturates; NaN gives zero, but the top bit when 64 bits are involved on either side.
u64 ToInteger(double v, int mode, const IntType& to, bool from_f64) {
  if (std::isnan(v)) return from_f64 || to.bits == 64 ? u64{1} << (to.bits - 1) : 0;
  const double r = IntegralPart(v, mode);
  const double limit = std::ldexp(1.0, 100);
  const s128 n = r > limit ? s128{1} << 100 : r < -limit ? -(s128{1} << 100) : static_cast<s128>(r);
  return static_cast<u64>(std::min(std::max(n, Lowest(to)), Highest(to)));
}
TEST(AluConvert, FloatToInteger) {
  for (const IntType& to : kInts) {
    for (const auto& rounding : kRoundings) {
      const std::string head = std::string("cvt.") + rounding.integral;
      const std::string d = std::string(".") + to.name, reg = " " + Reg(to.bits, 0);
      const auto store = [&](Thread* t, double v, bool f64) {
        // A signed byte is extended to its register of 16 bits.
        Store(t, to.bits, static_cast<u64>(ValueOf(to, ToInteger(v, rounding.mode, to, f64))));
      };
      Check(
          head + d + ".f32" + reg + ", %r1;",
          [&](Thread* t) { store(t, Get<float>(*t, 1), false); }, 10000);
      Check(
          head + ".ftz" + d + ".f32" + reg + ", %r1;",
          [&](Thread* t) { store(t, FlushedSingle(Get<float>(*t, 1)), false); }, 10000);
      Check(
          head + ".sat" + d + ".f64" + reg + ", %rd1;",
          [&](Thread* t) { store(t, Get<double>(*t, 1), true); }, 10000);
      Check(
          head + d + ".f16" + reg + ", %h1;",
          [&](Thread* t) { store(t, kHalf.Value(u16(t->h[1])), false); }, 10000);
      Check(
          head + d + ".bf16" + reg + ", %h1;",
          [&](Thread* t) { store(t, kBf16.Value(u16(t->h[1])), false); }, 10000);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(AluConvert, FloatToIntegralFloat) {
  for (const auto& rounding : kRoundings) {
    const std::string head = std::string("cvt.") + rounding.integral;
    Check1<float, float>(head + ".f32.f32", [&](float v) {
      return static_cast<float>(IntegralPart(v, rounding.mode));
    });
    Check1<float, float>(head + ".ftz.f32.f32", [&](float v) {
      return static_cast<float>(IntegralPart(FlushedSingle(v), rounding.mode));
    });
    Check1<double, double>(
        head + ".f64.f64", [&](double v) { return IntegralPart(v, rounding.mode); }, 20000,
        Nans::kAny);
    for (const Format16* format : {&kHalf, &kBf16}) {
      const std::string type = format == &kHalf ? ".f16" : ".bf16";
      Check1<u16, u16>(head + type + type, [&](u16 v) -> u16 {
        const double r = IntegralPart(format->Value(v), rounding.mode);
        return std::isnan(r) ? 0x7fff : format->Round(r, Mode::kNearest);
      });
    }
  }
}

// The nearest representable values through the processor: from 80-bit floats, which hold any u64.
template <class F>
F FromInteger(s128 v, int mode) {
  volatile long double x =
      static_cast<long double>(v < 0 ? -static_cast<long double>(static_cast<u64>(-v))
                                     : static_cast<long double>(static_cast<u64>(v)));
  std::fesetround(mode);
  volatile F r = static_cast<F>(x);
  std::fesetround(FE_TONEAREST);
  return r;
}
TEST(AluConvert, IntegerToFloat) {
  for (const IntType& from : kInts) {
    for (const auto& rounding : kRoundings) {
      const std::string head = std::string("cvt.") + rounding.word;
      const std::string s = std::string(".") + from.name, reg = ", " + Reg(from.bits, 1) + ";";
      const auto value = [&](const Thread& t) { return ValueOf(from, Raw(t, from.bits)); };
      Check(
          head + ".f32" + s + " %r0" + reg,
          [&](Thread* t) { Put<float>(t, FromInteger<float>(value(*t), rounding.mode)); }, 10000);
      Check(
          head + ".f64" + s + " %rd0" + reg,
          [&](Thread* t) { Put<double>(t, FromInteger<double>(value(*t), rounding.mode)); }, 10000);
      Check(
          head + ".f16" + s + " %h0" + reg,
          [&](Thread* t) { t->h[0] = kHalf.Round(value(*t), rounding.table); }, 10000);
      Check(
          head + ".bf16" + s + " %h0" + reg,
          [&](Thread* t) { t->h[0] = kBf16.Round(value(*t), rounding.table); }, 10000);
      if (HasFatalFailure()) return;
    }
  }
}

float Narrowed(double v, int mode) {
  volatile double x = v;
  std::fesetround(mode);
  volatile float r = static_cast<float>(x);
  std::fesetround(FE_TONEAREST);
  return r;
}
u16 Rounded16(const Format16& format, double v, Mode mode, bool satfinite = false,
              bool relu = false) {
  if (relu && v < 0) return 0;
  if (v == 0) return std::signbit(v) && !relu ? 0x8000 : 0;
  return format.Round(v, mode, satfinite);
}
TEST(AluConvert, FloatToFloat) {
  Check1<double, float>(
      "cvt.f64.f32", [](float v) { return static_cast<double>(v); }, 20000, Nans::kAny);
  Check1<double, float>(
      "cvt.ftz.f64.f32", [](float v) { return FlushedSingle(v); }, 20000, Nans::kAny);
  Check1<float, float>("cvt.sat.f32.f32", [](float v) {
    return !(v > 0) ? 0.0f : v > 1 ? 1.0f : v;
  });
  Check1<float, float>("cvt.ftz.sat.f32.f32", [](float v) {
    v = static_cast<float>(FlushedSingle(v));
    return !(v > 0) ? 0.0f : v > 1 ? 1.0f : v;
  });
  Check1<float, u16>("cvt.f32.f16", [](u16 v) { return static_cast<float>(kHalf.Value(v)); });
  Check1<float, u16>("cvt.f32.bf16", [](u16 v) { return static_cast<float>(kBf16.Value(v)); });
  Check1<double, u16>("cvt.f64.f16", [](u16 v) { return kHalf.Value(v); }, 20000, Nans::kAny);
  Check1<float, u16>("cvt.sat.f32.f16", [](u16 h) {
    const float v = static_cast<float>(kHalf.Value(h));
    return !(v > 0) ? 0.0f : v > 1 ? 1.0f : v;
  });
  for (const auto& rounding : kRoundings) {
    const std::string head = std::string("cvt.") + rounding.word;
    Check1<float, double>(head + ".f32.f64", [&](double v) { return Narrowed(v, rounding.mode); });
    Check1<float, double>(head + ".ftz.f32.f64", [&](double v) {
      return static_cast<float>(FlushedSingle(Narrowed(v, rounding.mode)));
    });
    Check1<float, double>(head + ".sat.f32.f64", [&](double v) {
      return Narrowed(!(v > 0) ? 0 : v > 1 ? 1 : v, rounding.mode);
    });
    for (const Format16* format : {&kHalf, &kBf16}) {
      const std::string type = format == &kHalf ? ".f16" : ".bf16";
      Check1<u16, float>(
          head + type + ".f32", [&](float v) { return Rounded16(*format, v, rounding.table); },
          100000);
      Check1<u16, double>(head + type + ".f64",
                          [&](double v) { return Rounded16(*format, v, rounding.table); });
      Check1<u16, float>(head + ".relu" + type + ".f32", [&](float v) {
        return Rounded16(*format, v, rounding.table, false, true);
      });
      Check1<u16, float>(head + ".satfinite" + type + ".f32",
                         [&](float v) { return Rounded16(*format, v, rounding.table, true); });
      for (const bool relu : {false, true}) {
        Check2<u32, float, float>(
            head + (relu ? ".relu" : "") + type + "x2.f32", [&](float a, float b) -> u32 {
              return u32{Rounded16(*format, a, rounding.table, false, relu)} << 16 |
                     Rounded16(*format, b, rounding.table, false, relu);
            });
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(AluConvert, Tf32) {
  Check1<u32, float>("cvt.rna.tf32.f32", [](float v) -> u32 {
    if (std::isnan(v)) return 0x7fffe000;
    if (std::isinf(v)) return As<u32>(v);
    // Half a unit of bit 13 added to the magnitude, then cut: carries run into the exponent.
    const u32 r = ((As<u32>(v) & 0x7fffffff) + 0x1000) & ~0x1fffu;
    return r | (As<u32>(v) & 0x80000000);
  });
}

TEST(AluConvert, EightBitFloats) {
  const struct {
    const char* name;
    const Format16* format;
  } kFormats[] = {{"e4m3x2", &kE4m3}, {"e5m2x2", &kE5m2}};
  for (const auto& f : kFormats) {
    const auto one = [&f](double v, bool relu) -> u16 {
      if (relu && !(v > 0) && !std::isnan(v)) return 0;
      if (v == 0) return std::signbit(v) ? 0x80 : 0;
      return f.format->Round(v, Mode::kNearest, true);
    };
    for (const bool relu : {false, true}) {
      const std::string head = std::string("cvt.rn.satfinite") + (relu ? ".relu." : ".") + f.name;
      Check2<u16, float, float>(head + ".f32", [&](float a, float b) -> u16 {
        return u16(one(a, relu) << 8 | one(b, relu));
      });
      Check1<u16, u32>(head + ".f16x2", [&](u32 a) -> u16 {
        return u16(one(kHalf.Value(u16(a >> 16)), relu) << 8 | one(kHalf.Value(u16(a)), relu));
      });
    }
    Check1<u32, u16>(std::string("cvt.rn.f16x2.") + f.name, [&](u16 a) -> u32 {
      const auto half = [&](u16 b) {
        return u32{Rounded16(kHalf, f.format->Value(b), Mode::kNearest)};
      };
      return half(a >> 8) << 16 | half(a & 0xff);
    });
  }
}

TEST(AluConvert, PackWithSaturation) {
  const auto clamp = [](u32 v, s32 low, s32 high) {
    return static_cast<u32>(std::min(std::max(static_cast<s32>(v), low), high));
  };
  Check2<u32, u32, u32>("cvt.pack.sat.s16.s32", [=](u32 a, u32 b) {
    return clamp(a, -32768, 32767) << 16 | (clamp(b, -32768, 32767) & 0xffff);
  });
  Check2<u32, u32, u32>("cvt.pack.sat.u16.s32", [=](u32 a, u32 b) {
    return clamp(a, 0, 65535) << 16 | clamp(b, 0, 65535);
  });
  Check3<u32, u32, u32, u32>("cvt.pack.sat.u8.s32.b32", [=](u32 a, u32 b, u32 c) {
    return c << 16 | clamp(a, 0, 255) << 8 | clamp(b, 0, 255);
  });
  Check3<u32, u32, u32, u32>("cvt.pack.sat.s8.s32.b32", [=](u32 a, u32 b, u32 c) {
    return c << 16 | (clamp(a, -128, 127) & 0xff) << 8 | (clamp(b, -128, 127) & 0xff);
  });
}

}  // namespace
}  // namespace allranks::node::alu_test
