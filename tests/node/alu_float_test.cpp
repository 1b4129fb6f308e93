// f32, f64, f16 and bf16 arithmetic and comparisons. Expectations come from the processor's own
// rounding modes (fesetround), from 128-bit floats, and for 16-bit formats from a search in the
// sorted table of all their values: none of it is how the handlers work.
#include <gtest/gtest-spi.h>

#include <cfenv>
#include <cmath>
#include <map>

#include "alu/formats.h"
#include "alu/harness.h"

namespace allranks::node::alu_test {
namespace {

float Flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }
float Saturated(float v) { return std::isnan(v) || !(v > 0) ? 0.0f : v > 1 ? 1.0f : v; }

const struct {
  const char* word;
  int mode;
} kRoundings[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

// Evaluates f with the processor rounding in the given mode; volatile keeps it from being moved.
template <class T, class F>
T Rounded(int mode, T a, T b, T c, F f) {
  volatile T x = a, y = b, z = c;
  std::fesetround(mode);
  volatile T r = f(x, y, z);
  std::fesetround(FE_TONEAREST);
  return r;
}

struct Operation {
  std::string name;
  int operands;
  float (*f)(float, float, float);
  double (*d)(double, double, double);
  bool sat;
};
const Operation kOperations[] = {
    {"add", 2, [](float a, float b, float) { return a + b; },
     [](double a, double b, double) { return a + b; }, true},
    {"sub", 2, [](float a, float b, float) { return a - b; },
     [](double a, double b, double) { return a - b; }, true},
    {"mul", 2, [](float a, float b, float) { return a * b; },
     [](double a, double b, double) { return a * b; }, true},
    {"div", 2, [](float a, float b, float) { return a / b; },
     [](double a, double b, double) { return a / b; }, false},
    {"fma", 3, [](float a, float b, float c) { return std::fma(a, b, c); },
     [](double a, double b, double c) { return std::fma(a, b, c); }, true},
    {"rcp", 1, [](float a, float, float) { return 1.0f / a; },
     [](double a, double, double) { return 1.0 / a; }, false},
    {"sqrt", 1, [](float a, float, float) { return std::sqrt(a); },
     [](double a, double, double) { return std::sqrt(a); }, false}};

std::string Operands(const std::string& reg, int n) {
  std::string s = " " + reg + "0";
  for (int i = 1; i <= n; ++i) s += ", " + reg + std::to_string(i);
  return s + ";";
}

class AluRounding : public ::testing::TestWithParam<int> {};
TEST_P(AluRounding, F32) {
  const Operation& op = kOperations[GetParam()];
  for (const auto& rounding : kRoundings) {
    for (const bool ftz : {false, true}) {
      for (const bool sat : {false, true}) {
        if (sat && !op.sat) continue;
        const std::string form =
            op.name + "." + rounding.word + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + ".f32";
        Check(
            form + Operands("%r", op.operands),
            [&](Thread* t) {
              const auto in = [&](int i) {
                const float v = Get<float>(*t, i);
                return ftz ? Flushed(v) : v;
              };
              float r = Rounded<float>(rounding.mode, in(1), in(2), in(3), op.f);
              if (ftz) r = Flushed(r);
              Put<float>(t, sat ? Saturated(r) : r);
            },
            ftz || sat ? 12000 : 100000);
        if (HasFatalFailure()) return;
      }
    }
  }
}
TEST_P(AluRounding, F64) {
  const Operation& op = kOperations[GetParam()];
  for (const auto& rounding : kRoundings) {
    Check(
        op.name + "." + rounding.word + ".f64" + Operands("%rd", op.operands),
        [&](Thread* t) {
          Put<double>(t, Rounded<double>(rounding.mode, Get<double>(*t, 1), Get<double>(*t, 2),
                                         Get<double>(*t, 3), op.d));
        },
        20000, Nans::kAny);
    if (HasFatalFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(All, AluRounding, ::testing::Range(0, 7),
                         [](const auto& p) { return kOperations[p.param].name; });

TEST(AluFloat, UnroundedAndApproximateFormsRoundToNearest) {
  Check2<float, float, float>("add.f32", [](float a, float b) { return a + b; });
  Check2<float, float, float>("mul.f32", [](float a, float b) { return a * b; });
  Check2<float, float, float>("div.full.f32", [](float a, float b) { return a / b; });
  Check1<float, float>("rcp.approx.ftz.f32", [](float a) { return Flushed(1 / Flushed(a)); });
  Check1<float, float>("sqrt.approx.f32", [](float a) { return std::sqrt(a); });
  Check3<float, float, float, float>("mad.rn.f32",
                                     [](float a, float b, float c) { return std::fma(a, b, c); });
  Check2<double, double, double>(
      "add.f64", [](double a, double b) { return a + b; }, 20000, Nans::kAny);
}

// f32 has one NaN; f64 passes on the first operand's, quieted, and makes its own otherwise.
TEST(AluFloat, NansOfF64) {
  Check("add.f64 %rd0, %rd1, %rd2;", [](Thread* t) {
    const double a = Get<double>(*t, 1), b = Get<double>(*t, 2), r = a + b;
    t->rd[0] = !std::isnan(r)  ? As<u64>(r)
               : std::isnan(a) ? t->rd[1] | u64{1} << 51
               : std::isnan(b) ? t->rd[2] | u64{1} << 51
                               : 0xfff8000000000000;
  });
}

TEST(AluFloat, SignsOnly) {
  Check1<u32, u32>("abs.f32", [](u32 a) { return a & 0x7fffffff; });
  Check1<u32, u32>("neg.f32", [](u32 a) { return a ^ 0x80000000; });
  Check1<u32, u32>("neg.ftz.f32",
                   [](u32 a) { return As<u32>(Flushed(As<float>(a))) ^ 0x80000000; });
  Check1<u32, u32>("abs.ftz.f32",
                   [](u32 a) { return As<u32>(Flushed(As<float>(a))) & 0x7fffffff; });
  Check1<u64, u64>("abs.f64", [](u64 a) { return a & ~(u64{1} << 63); });
  Check1<u64, u64>("neg.f64", [](u64 a) { return a ^ u64 { 1 } << 63; });
  Check2<u32, u32, u32>("copysign.f32",
                        [](u32 a, u32 b) { return (b & 0x7fffffff) | (a & 0x80000000); });
  Check2<u64, u64, u64>("copysign.f64",
                        [](u64 a, u64 b) { return (b << 1 >> 1) | (a >> 63 << 63); });
}

// By a total order: NaN handling apart, -0 < +0.
template <class T>
T Extreme(T a, T b, bool maximum, bool nan, T canonical) {
  if (std::isnan(a) || std::isnan(b)) {
    if (nan || (std::isnan(a) && std::isnan(b))) return canonical;
    return std::isnan(a) ? b : a;
  }
  const bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return less != maximum ? a : b;
}
TEST(AluFloat, MinMax) {
  for (const bool maximum : {false, true}) {
    const std::string name = maximum ? "max" : "min";
    for (const bool nan : {false, true}) {
      for (const bool ftz : {false, true}) {
        for (const bool xorsign : {false, true}) {
          const std::string form = name + (ftz ? ".ftz" : "") + (nan ? ".NaN" : "") +
                                   (xorsign ? ".xorsign.abs" : "") + ".f32";
          Check2<float, float, float>(form, [=](float a, float b) {
            if (ftz) a = Flushed(a), b = Flushed(b);
            const bool negative = std::signbit(a) != std::signbit(b);
            if (!xorsign) return Extreme(a, b, maximum, nan, NAN);
            const float r = Extreme(std::fabs(a), std::fabs(b), maximum, nan, NAN);
            return std::copysign(r, negative ? -1.0f : 1.0f);
          });
        }
      }
      Check3<float, float, float, float>(
          name + (nan ? ".NaN" : "") + ".f32", [=](float a, float b, float c) {
            return Extreme(Extreme<float>(a, b, maximum, nan, NAN), c, maximum, nan, float{NAN});
          });
    }
    Check2<double, double, double>(
        name + ".f64",
        [=](double a, double b) { return Extreme<double>(a, b, maximum, false, NAN); }, 20000,
        Nans::kAny);
  }
}

// --- comparisons
// ----------------------------------------------------------------------------------
const struct {
  const char* word;
  bool (*holds)(double, double);
} kComparisons[] = {{"eq", [](double a, double b) { return a == b; }},
                    {"ne", [](double a, double b) { return a < b || a > b; }},
                    {"lt", [](double a, double b) { return a < b; }},
                    {"le", [](double a, double b) { return a <= b; }},
                    {"gt", [](double a, double b) { return a > b; }},
                    {"ge", [](double a, double b) { return a >= b; }},
                    {"equ", [](double a, double b) { return a == b || std::isunordered(a, b); }},
                    {"neu", [](double a, double b) { return a != b || std::isunordered(a, b); }},
                    {"ltu", [](double a, double b) { return a < b || std::isunordered(a, b); }},
                    {"leu", [](double a, double b) { return a <= b || std::isunordered(a, b); }},
                    {"gtu", [](double a, double b) { return a > b || std::isunordered(a, b); }},
                    {"geu", [](double a, double b) { return a >= b || std::isunordered(a, b); }},
                    {"num", [](double a, double b) { return !std::isunordered(a, b); }},
                    {"nan", [](double a, double b) { return std::isunordered(a, b); }}};
TEST(AluFloat, Setp) {
  for (const auto& c : kComparisons) {
    const std::string setp = std::string("setp.") + c.word;
    Check2<bool, double, double>(
        setp + ".f64", [&](double a, double b) { return c.holds(a, b); }, 10000);
    Check2<bool, float, float>(
        setp + ".f32", [&](float a, float b) { return c.holds(a, b); }, 10000);
    Check2<bool, float, float>(
        setp + ".ftz.f32", [&](float a, float b) { return c.holds(Flushed(a), Flushed(b)); },
        10000);
    Check2<bool, u16, u16>(
        setp + ".f16", [&](u16 a, u16 b) { return c.holds(kHalf.Value(a), kHalf.Value(b)); },
        10000);
    Check2<bool, u16, u16>(
        setp + ".bf16", [&](u16 a, u16 b) { return c.holds(kBf16.Value(a), kBf16.Value(b)); },
        10000);
    Check(
        setp + ".f16x2 %p0|%p2, %r1, %r2;",
        [&](Thread* t) {
          t->p[0] = c.holds(kHalf.Value(u16(t->r[1])), kHalf.Value(u16(t->r[2])));
          t->p[2] = c.holds(kHalf.Value(u16(t->r[1] >> 16)), kHalf.Value(u16(t->r[2] >> 16)));
        },
        10000);
    Check(
        std::string("set.") + c.word + ".f32.f32 %r0, %r1, %r2;",
        [&](Thread* t) {
          t->r[0] = c.holds(Get<float>(*t, 1), Get<float>(*t, 2)) ? 0x3f800000 : 0;
        },
        10000);
    const auto pair = [&c](const Format16& format, u64 a, u64 b, u32 one) -> u32 {
      return (c.holds(format.Value(u16(a)), format.Value(u16(b))) ? one : 0) |
             (c.holds(format.Value(u16(a >> 16)), format.Value(u16(b >> 16))) ? one << 16 : 0);
    };
    Check(
        std::string("set.") + c.word + ".f16x2.f16x2 %r0, %r1, %r2;",
        [&](Thread* t) { t->r[0] = pair(kHalf, t->r[1], t->r[2], 0x3c00); }, 10000);
    Check(
        std::string("set.") + c.word + ".u32.f16x2 %r0, %r1, %r2;",
        [&](Thread* t) { t->r[0] = pair(kHalf, t->r[1], t->r[2], 0xffff); }, 10000);
    Check(
        std::string("set.") + c.word + ".bf16x2.bf16x2 %r0, %r1, %r2;",
        [&](Thread* t) { t->r[0] = pair(kBf16, t->r[1], t->r[2], 0x3f80); }, 10000);
    Check(
        std::string("set.") + c.word + ".u32.bf16x2 %r0, %r1, %r2;",
        [&](Thread* t) { t->r[0] = pair(kBf16, t->r[1], t->r[2], 0xffff); }, 10000);
    if (HasFatalFailure()) return;
  }
}
TEST(AluFloat, Testp) {
  const struct {
    const char* word;
    bool (*holds)(int);
  } kTests[] = {{"finite", [](int c) { return c != FP_NAN && c != FP_INFINITE; }},
                {"infinite", [](int c) { return c == FP_INFINITE; }},
                {"number", [](int c) { return c != FP_NAN; }},
                {"notanumber", [](int c) { return c == FP_NAN; }},
                {"normal", [](int c) { return c == FP_NORMAL; }},
                {"subnormal", [](int c) { return c == FP_SUBNORMAL; }}};
  for (const auto& test : kTests) {
    Check1<bool, float>(std::string("testp.") + test.word + ".f32",
                        [&](float a) { return test.holds(std::fpclassify(a)); });
    Check1<bool, double>(std::string("testp.") + test.word + ".f64",
                         [&](double a) { return test.holds(std::fpclassify(a)); });
  }
}

TEST(AluFloat, PairsOfF32) {
  const auto half = [](u64 v, int shift) { return As<float>(static_cast<u32>(v >> shift)); };
  const auto bits = [](float v) { return u64{std::isnan(v) ? 0x7fffffff : As<u32>(v)}; };
  Check("fma.rn.f32x2 %rd0, %rd1, %rd2, %rd3;", [=](Thread* t) {
    t->rd[0] = bits(std::fma(half(t->rd[1], 0), half(t->rd[2], 0), half(t->rd[3], 0))) |
               bits(std::fma(half(t->rd[1], 32), half(t->rd[2], 32), half(t->rd[3], 32))) << 32;
  });
  Check("add.f32x2 %rd0, %rd1, %rd2;", [=](Thread* t) {
    t->rd[0] = bits(half(t->rd[1], 0) + half(t->rd[2], 0)) |
               bits(half(t->rd[1], 32) + half(t->rd[2], 32)) << 32;
  });
  Check("mul.rz.f32x2 %rd0, %rd1, %rd2;", [=](Thread* t) {
    const auto mul = [](float a, float b) {
      return Rounded<float>(FE_TOWARDZERO, a, b, 0, [](float x, float y, float) { return x * y; });
    };
    t->rd[0] = bits(mul(half(t->rd[1], 0), half(t->rd[2], 0))) |
               bits(mul(half(t->rd[1], 32), half(t->rd[2], 32))) << 32;
  });
}

// --- transcendental functions: at most one unit off the rounded true value
// ---------------------------
u32 Order(float v) {
  const u32 b = As<u32>(v);
  return b >> 31 ? ~b : b | 0x80000000;
}
void CheckNear(const std::string& form, long double (*f)(long double), bool ftz) {
  Machine machine(form + " %r0, %r1;");
  ASSERT_TRUE(machine.selected()) << form;
  for (int round = 0; round < 4000; ++round) {
    Thread in[kLanes], out[kLanes], first[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      FillRandom(&in[l]);
      // Ordinary arguments as well as edges and huge ones.
      if (round % 2 == 0)
        in[l].r[1] =
            As<u32>(static_cast<float>(std::ldexp(static_cast<double>(static_cast<s32>(Random()())),
                                                  static_cast<int>(Random()() % 16) - 32)));
    }
    for (std::size_t isa = 0; isa < machine.isas(); ++isa) {
      machine.Run(isa, in, kAllLanes, out);
      for (int l = 0; l < kLanes; ++l) {
        if (isa == 0) first[l] = out[l];
        ASSERT_EQ(out[l].r[0], first[l].r[0]) << form << " differs between instruction sets";
        float x = As<float>(static_cast<u32>(in[l].r[1]));
        if (ftz) x = Flushed(x);
        float want = static_cast<float>(f(x));
        if (ftz) want = Flushed(want);
        const float got = As<float>(static_cast<u32>(out[l].r[0]));
        if (std::isnan(want)) {
          ASSERT_EQ(out[l].r[0], 0x7fffffffu) << form << " " << x;
          continue;
        }
        const u32 a = Order(got), b = Order(want);
        ASSERT_LE(a > b ? a - b : b - a, 1u)
            << form << "(" << x << ") = " << got << ", not " << want;
      }
    }
  }
}
TEST(AluFloat, Transcendental) {
  for (const bool ftz : {false, true}) {
    const std::string tail = ftz ? ".approx.ftz.f32" : ".approx.f32";
    CheckNear("sin" + tail, [](long double x) { return std::sin(x); }, ftz);
    CheckNear("cos" + tail, [](long double x) { return std::cos(x); }, ftz);
    CheckNear("ex2" + tail, [](long double x) { return std::exp2(x); }, ftz);
    CheckNear("lg2" + tail, [](long double x) { return std::log2(x); }, ftz);
    CheckNear("rsqrt" + tail, [](long double x) { return 1 / std::sqrt(x); }, ftz);
  }
  CheckNear("tanh.approx.f32", [](long double x) { return std::tanh(x); }, false);
}
TEST(AluFloat, ApproximateF64UsesTheUpperHalf) {
  Check1<u64, u64>("rcp.approx.ftz.f64", [](u64 a) -> u64 {
    const double x = As<double>(a & 0xffffffff00000000);
    if (std::isnan(x)) return 0x7fffffff00000000;
    const double r = 1 / (std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0, x) : x);
    return As<u64>(std::fpclassify(r) == FP_SUBNORMAL ? std::copysign(0.0, r) : r) &
           0xffffffff00000000;
  });
  Check1<u64, u64>("rsqrt.approx.ftz.f64", [](u64 a) -> u64 {
    double x = As<double>(a & 0xffffffff00000000);
    if (std::fpclassify(x) == FP_SUBNORMAL) x = std::copysign(0.0, x);
    const double r = 1 / std::sqrt(x);
    return std::isnan(r) ? 0x7fffffff00000000 : As<u64>(r) & 0xffffffff00000000;
  });
}
TEST(AluFloat, ReciprocalSquareRootF64) {
  // Within one unit in the last place by its documentation; here the quotient of rounded parts.
  Check1<u64, u64>("rsqrt.approx.f64", [](u64 a) -> u64 {
    const double r = 1 / std::sqrt(As<double>(a));
    if (std::isnan(As<double>(a))) return a | u64{1} << 51;
    return std::isnan(r) ? 0xfff8000000000000 : As<u64>(r);
  });
}

// --- 16-bit formats
// -------------------------------------------------------------------------------
struct Variant {
  const char* words;
  bool ftz, sat, relu;
};
template <class F>
u16 Compute(const Format16& format, const Variant& v, F f, std::initializer_list<u16> operands) {
  quad x[3] = {0, 0, 0};
  int i = 0;
  for (const u16 o : operands) x[i++] = format.Value(v.ftz ? format.Flushed(o) : o);
  const quad exact = f(x[0], x[1], x[2]);
  u16 r = format.Round(exact, Mode::kNearest);
  // The sign of an exact zero is the processor's: computed in double, where zeros stay zeros.
  if (exact == 0) r = std::signbit(static_cast<double>(exact)) ? 0x8000 : 0;
  if (v.ftz) r = format.Flushed(r);
  if (v.sat) r = format.IsNan(r) || (r & 0x8000) ? 0 : std::min(r, format.Round(1, Mode::kNearest));
  if (v.relu && (r & 0x8000) && !format.IsNan(r)) r = 0;
  return r;
}
template <class F>
void CheckHalf(const Format16& format, const std::string& name, const std::string& type,
               int operands, std::initializer_list<Variant> variants, F f) {
  for (const Variant& v : variants) {
    const auto one = [&format, v, f](u64 a, u64 b, u64 c) -> u64 {
      return Compute(format, v, f, {u16(a), u16(b), u16(c)});
    };
    Check(
        name + v.words + type + Operands("%h", operands),
        [one](Thread* t) { t->h[0] = one(t->h[1], t->h[2], t->h[3]); }, 10000);
    Check(
        name + v.words + type + "x2" + Operands("%r", operands),
        [one](Thread* t) {
          t->r[0] = one(t->r[1], t->r[2], t->r[3]) |
                    one(t->r[1] >> 16, t->r[2] >> 16, t->r[3] >> 16) << 16;
        },
        10000);
    if (::testing::Test::HasFatalFailure()) return;
  }
}
TEST(AluHalf, F16) {
  const std::initializer_list<Variant> kPlain = {
      {"", 0, 0, 0}, {".ftz", 1, 0, 0}, {".sat", 0, 1, 0}, {".ftz.sat", 1, 1, 0}, {".rn", 0, 0, 0}};
  CheckHalf(kHalf, "add", ".f16", 2, kPlain, [](quad a, quad b, quad) { return a + b; });
  CheckHalf(kHalf, "sub", ".f16", 2, kPlain, [](quad a, quad b, quad) { return a - b; });
  CheckHalf(kHalf, "mul", ".f16", 2, kPlain, [](quad a, quad b, quad) { return a * b; });
  CheckHalf(kHalf, "fma", ".f16", 3,
            {{".rn", 0, 0, 0},
             {".rn.ftz", 1, 0, 0},
             {".rn.sat", 0, 1, 0},
             {".rn.ftz.sat", 1, 1, 0},
             {".rn.relu", 0, 0, 1},
             {".rn.ftz.relu", 1, 0, 1}},
            [](quad a, quad b, quad c) { return a * b + c; });
}
TEST(AluHalf, Bf16) {
  CheckHalf(kBf16, "add", ".bf16", 2, {{"", 0, 0, 0}, {".rn", 0, 0, 0}},
            [](quad a, quad b, quad) { return AddOdd(a, b); });
  CheckHalf(kBf16, "sub", ".bf16", 2, {{"", 0, 0, 0}},
            [](quad a, quad b, quad) { return AddOdd(a, -b); });
  CheckHalf(kBf16, "mul", ".bf16", 2, {{"", 0, 0, 0}}, [](quad a, quad b, quad) { return a * b; });
  CheckHalf(kBf16, "fma", ".bf16", 3, {{".rn", 0, 0, 0}, {".rn.relu", 0, 0, 1}},
            [](quad a, quad b, quad c) { return AddOdd(a * b, c); });
}
TEST(AluHalf, MinMaxNegAbs) {
  for (const Format16* format : {&kHalf, &kBf16}) {
    const std::string type = format == &kHalf ? ".f16" : ".bf16";
    for (const bool maximum : {false, true}) {
      for (const bool nan : {false, true}) {
        const auto one = [=](u16 a, u16 b) -> u16 {
          const double r = Extreme<double>(format->Value(a), format->Value(b), maximum, nan, NAN);
          if (std::isnan(r)) return 0x7fff;
          return r == 0 ? (std::signbit(r) ? 0x8000 : 0) : format->Round(r, Mode::kNearest);
        };
        const std::string form = std::string(maximum ? "max" : "min") + (nan ? ".NaN" : "") + type;
        Check2<u16, u16, u16>(form, one, 10000);
        Check2<u32, u32, u32>(
            form + "x2",
            [one](u32 a, u32 b) -> u32 {
              return one(u16(a), u16(b)) | u32{one(u16(a >> 16), u16(b >> 16))} << 16;
            },
            10000);
      }
    }
    Check1<u16, u16>("neg" + type, [](u16 a) -> u16 { return a ^ 0x8000; });
    Check1<u16, u16>("abs" + type, [](u16 a) -> u16 { return a & 0x7fff; });
    Check1<u32, u32>("neg" + type + "x2", [](u32 a) { return a ^ 0x80008000; });
    Check1<u32, u32>("abs" + type + "x2", [](u32 a) { return a & 0x7fff7fff; });
  }
}
TEST(AluHalf, Transcendental) {
  const auto near = [](const Format16& format, u16 got, u16 a, long double want) {
    if (std::isnan(format.Value(a))) return got == 0x7fff;
    const u16 w = format.Round(want, Mode::kNearest);
    return got == w || std::abs(int{got} - int{w}) <= 1;
  };
  for (u32 a = 0; a < 0x10000; a += kLanes) {
    for (const std::string form :
         {"ex2.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.f16", "tanh.approx.bf16"}) {
      static std::map<std::string, Machine> machines;
      Machine& machine = machines.try_emplace(form, form + " %h0, %h1;").first->second;
      ASSERT_TRUE(machine.selected()) << form;
      Thread in[kLanes], out[kLanes];
      for (u32 l = 0; l < kLanes; ++l) in[l].h[1] = a + l;
      const Format16& format = form.find("bf16") != std::string::npos ? kBf16 : kHalf;
      for (std::size_t isa = 0; isa < machine.isas(); ++isa) {
        machine.Run(isa, in, kAllLanes, out);
        for (u32 l = 0; l < kLanes; ++l) {
          const long double x = format.Value(u16(a + l));
          const long double want = form[0] == 'e' ? std::exp2(x) : std::tanh(x);
          ASSERT_TRUE(near(format, u16(out[l].h[0]), u16(a + l), want))
              << form << std::hex << " " << a + l << " " << out[l].h[0];
        }
      }
    }
  }
}

// The harness itself must notice a wrong value, a wrong lane and a wrong register.
TEST(AluHarness, Notices) {
  EXPECT_FATAL_FAILURE(Check("add.s32 %r0, %r1, %r2;",
                             [](Thread* t) { t->r[0] = static_cast<u32>(t->r[1] - t->r[2]); }),
                       "got");
  EXPECT_FATAL_FAILURE(Check("add.s32 %r0, %r1, %r2;",
                             [](Thread* t) { t->r[3] = static_cast<u32>(t->r[1] + t->r[2]); }),
                       "got");
}

}  // namespace
}  // namespace allranks::node::alu_test
