// Transcendental functions. Hardware approximates them with tables of its own; here they are
// computed in double by polynomials and rounded once, so they are at least as close to the true
// value, and the same on every processor: only additions, multiplications and divisions in a fixed
// order, no mathematical library.
#include "node/alu/alu_float.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLog2E = 0x1.71547652b82fep+0;

// sum of c[i] * x^i. A recursion, not a loop: a loop inside the one over lanes keeps that from
// being vectorised.
template <int kFrom = 0, int kSize>
inline double Polynomial(const double (&c)[kSize], double x) {
  if constexpr (kFrom == kSize - 1) {
    return c[kFrom];
  } else {
    return Polynomial<kFrom + 1>(c, x) * x + c[kFrom];
  }
}

// 2^x for |x| <= 1000: the nearest integer goes into the exponent, the rest through exp's series.
inline double Exp2(double x) {
  constexpr double kSeries[] = {1.0,
                                1.0,
                                1.0 / 2,
                                1.0 / 6,
                                1.0 / 24,
                                1.0 / 120,
                                1.0 / 720,
                                1.0 / 5040,
                                1.0 / 40320,
                                1.0 / 362880,
                                1.0 / 3628800,
                                1.0 / 39916800,
                                1.0 / 479001600};
  const double n = __builtin_rint(x);
  const u64 exponent = static_cast<u64>(static_cast<s64>(static_cast<s32>(n)) + 1023);
  return Polynomial(kSeries, (x - n) * kLn2) * Double(exponent << 52);
}

struct Ex2 {
  static float Do(float x) {
    // Beyond these the result is infinite or zero in float; NaN fails both comparisons.
    double v = x > 200.0f ? 200.0 : static_cast<double>(x);
    v = v < -200.0 ? -200.0 : v;
    const double r = Exp2(v == v ? v : 0.0);
    return x == x ? static_cast<float>(r) : x;
  }
};

// log2(m * 2^e) with m around 1: atanh's series of (m - 1) / (m + 1).
struct Lg2 {
  static float Do(float x) {
    constexpr double kSeries[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                  1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
    const u64 b = Bits(static_cast<double>(x));
    const u64 fraction = b & 0x000fffffffffffff;
    const bool upper = fraction > 0x6a09e667f3bcc;  // above the square root of two
    const double m = Double(fraction | u64{upper ? 1022u : 1023u} << 52);
    const double e =
        static_cast<double>(static_cast<s32>((b >> 52) & 0x7ff) - 1023 + (upper ? 1 : 0));
    const double s = (m - 1.0) / (m + 1.0);
    const double r = e + s * Polynomial(kSeries, s * s) * (2.0 * kLog2E);
    float result = static_cast<float>(r);
    result = x == __builtin_inff() ? x : result;
    result = x == 0 ? -__builtin_inff() : result;
    return x >= 0 ? result : Float(kNanF32);
  }
};

struct Tanh {
  static float Do(float x) {
    constexpr double kSeries[] = {1.0,         -1.0 / 3,    2.0 / 15,
                                  -17.0 / 315, 62.0 / 2835, -1382.0 / 155925};
    const double a = __builtin_fabs(static_cast<double>(x));
    const double near_zero = a * Polynomial(kSeries, a * a);
    const double far = 1.0 - 2.0 / (Exp2((a < 20.0 ? a : 20.0) * (2.0 * kLog2E)) + 1.0);
    const float r = static_cast<float>(a < 0.03125 ? near_zero : far);
    return x == x ? __builtin_copysignf(r, x) : x;
  }
};

// x modulo pi/2, as a quadrant and a rest within pi/4 of zero.
struct Reduced {
  double rest;
  u32 quadrant;
};

// pi/2 in three parts of 33 bits, so that small multiples of the first two are exact.
inline Reduced ReduceSmall(double x) {
  constexpr double kPart1 = 0x1.921fb544p+0, kPart2 = 0x1.0b4611a6p-34,
                   kPart3 = 0x1.3198a2e037073p-69;
  const double n = __builtin_rint(x * 0x1.45f306dc9c883p-1);
  const double rest = ((x - n * kPart1) - n * kPart2) - n * kPart3;
  return {rest, static_cast<u32>(static_cast<s32>(n)) & 3};
}

// For large x only the bits of 2/pi count that do not make multiples of four.
inline Reduced ReduceLarge(float x) {
  constexpr u32 kTwoOverPi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561};
  const u32 b = Bits(x) & 0x7fffffff;
  const u32 m = (b & 0x7fffff) | 0x800000;
  const int e = static_cast<int>(b >> 23) - 150;
  // First wanted bit is number e - 1 behind the point; the table starts 32 bits before the point.
  const int first = e - 2 + 32;
  const int word = first / 32, shift = first % 32;
  u128 window = 0;
  for (int i = 0; i < 4; ++i) window = window << 32 | kTwoOverPi[word + i];
  // 96 bits of 2/pi from bit `first`; two of the product's bits are before the point.
  const u128 bits = (window << shift) >> 32;
  const u128 product = (bits * m) << 32;
  u32 quadrant = static_cast<u32>(product >> 126);
  s64 fraction = static_cast<s64>(static_cast<u64>(product >> 62));
  // As a signed number the fraction is within half a quadrant of zero.
  quadrant += fraction < 0 ? 1 : 0;
  double rest = static_cast<double>(fraction) * 0x1p-64 * 0x1.921fb54442d18p+0;
  if ((Bits(x) >> 31) != 0) {
    rest = -rest;
    quadrant = 0u - quadrant;
  }
  return {rest, quadrant & 3};
}

inline double SinNearZero(double x) {
  constexpr double kSeries[] = {1.0,
                                -1.0 / 6,
                                1.0 / 120,
                                -1.0 / 5040,
                                1.0 / 362880,
                                -1.0 / 39916800,
                                1.0 / 6227020800,
                                -1.0 / 1307674368000,
                                1.0 / 355687428096000};
  return x * Polynomial(kSeries, x * x);
}
inline double CosNearZero(double x) {
  constexpr double kSeries[] = {1.0,
                                -1.0 / 2,
                                1.0 / 24,
                                -1.0 / 720,
                                1.0 / 40320,
                                -1.0 / 3628800,
                                1.0 / 479001600,
                                -1.0 / 87178291200,
                                1.0 / 20922789888000};
  return Polynomial(kSeries, x * x);
}

// sin(x + turns * pi/2)
template <u32 kTurns>
struct Trigonometric {
  static float Do(float x) {
    const float a = __builtin_fabsf(x);
    if (!(a < __builtin_inff())) return Float(kNanF32);
    if (kTurns == 0 && a == 0) return x;
    const Reduced r = a < 0x1p20f ? ReduceSmall(x) : ReduceLarge(x);
    const u32 quadrant = (r.quadrant + kTurns) & 3;
    const double v = (quadrant & 1) != 0 ? CosNearZero(r.rest) : SinNearZero(r.rest);
    return static_cast<float>((quadrant & 2) != 0 ? -v : v);
  }
};

template <class F, u32 V>
struct OnF32 {
  static float Do(float x) {
    constexpr bool kFlush = (V & kFtz) != 0;
    return Canonical(FlushIf<kFlush>(F::Do(FlushIf<kFlush>(x))));
  }
};

// Subnormals of bf16 are those of f32.
template <class F>
struct Flushing {
  static float Do(float x) { return Flush(F::Do(Flush(x))); }
};

template <class F, class T>
struct OnPair {
  static u32 Do(u32 a) {
    const u32 low = T::Store(F::Do(T::Load(a & 0xffff)));
    return low | T::Store(F::Do(T::Load(a >> 16))) << 16;
  }
};

#define SPECIAL(what, F)                                                         \
  {Key(AluOp::what, Type::kF32), kUnary<OnF32<F, 0>, F32>}, {                    \
    Key(AluOp::what, Type::kF32, Type::kNone, kFtz), kUnary<OnF32<F, kFtz>, F32> \
  }
#define SPECIAL_HALF(what, T, F, v)                                             \
  {Key(AluOp::what, Type::k##T, Type::kNone, v), kUnary<F, T>}, {               \
    Key(AluOp::what, Type::k##T##x2, Type::kNone, v), kUnary<OnPair<F, T>, U32> \
  }

constexpr Entry kEntries[] = {
    SPECIAL(kEx2, Ex2),
    SPECIAL(kLg2, Lg2),
    SPECIAL(kTanh, Tanh),
    SPECIAL(kSin, Trigonometric<0>),
    SPECIAL(kCos, Trigonometric<1>),
    SPECIAL_HALF(kEx2, F16, Ex2, 0),
    SPECIAL_HALF(kEx2, BF16, Flushing<Ex2>, kFtz),
    SPECIAL_HALF(kTanh, F16, Tanh, 0),
    SPECIAL_HALF(kTanh, BF16, Tanh, 0),
};

}  // namespace

Entries SpecialEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
