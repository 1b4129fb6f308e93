// f32 and f64 arithmetic: rounding to nearest with and without .ftz and .sat, extrema, and the
// directed roundings, whose mode is read from Op::imm.
#include "node/alu/alu_float.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

// --- f32, to nearest ----------------------------------------------------------------------------
template <u32 kVariant>
inline float Finish(float r) {
  r = FlushIf < (kVariant & kFtz) != 0 > (r);
  return (kVariant & kSat) != 0 ? Saturate(r) : Canonical(r);
}
template <u32 kVariant>
inline float In(float v) {
  return FlushIf < (kVariant & kFtz) != 0 > (v);
}

// .ftz flushes a result that is tiny once rounded as if exponents had no lower bound: half of
// 0x00ffffff is flushed though it rounds to the smallest normal number. `scaled` is the result
// times 2^64, where nothing is tiny; it may overflow only when the result is far from it.
inline float FlushTiny(float r, float scaled) {
  const u32 b = Bits(r);
  return Float(__builtin_fabsf(scaled) < 0x1p-62f ? b & 0x80000000 : b);
}
template <u32 kVariant>
inline float FinishFlushed(float r) {
  return (kVariant & kSat) != 0 ? Saturate(r) : Canonical(r);
}

// A sum that is tiny is exact.
template <u32 V>
struct AddF {
  static float Do(float a, float b) { return Finish<V>(In<V>(a) + In<V>(b)); }
};
template <u32 V>
struct SubF {
  static float Do(float a, float b) { return Finish<V>(In<V>(a) - In<V>(b)); }
};
template <u32 V>
struct MulF {
  static float Do(float a, float b) {
    const float x = In<V>(a), y = In<V>(b), r = x * y;
    return FinishFlushed<V>((V & kFtz) != 0 ? FlushTiny(r, x * 0x1p64f * y) : r);
  }
};
template <u32 V>
struct DivF {
  static float Do(float a, float b) {
    const float x = In<V>(a), y = In<V>(b), r = x / y;
    return FinishFlushed<V>((V & kFtz) != 0 ? FlushTiny(r, x * 0x1p64f / y) : r);
  }
};
template <u32 V>
struct FmaF {
  static float Do(float a, float b, float c) {
    const float x = In<V>(a), y = In<V>(b), z = In<V>(c);
    if constexpr ((V & kFtz) == 0) return FinishFlushed<V>(Fma(x, y, z));
#ifdef __FMA__
    return FinishFlushed<V>(FlushTiny(Fma(x, y, z), Fma(x * 0x1p64f, y, z * 0x1p64f)));
#else
    const double sum = AddOdd(static_cast<double>(x) * y, static_cast<double>(z));
    return FinishFlushed<V>(FlushTiny(static_cast<float>(sum), static_cast<float>(sum * 0x1p64)));
#endif
  }
};
template <u32 V>
struct RcpF {
  static float Do(float a) { return Finish<V>(1.0f / In<V>(a)); }
};
template <u32 V>
struct SqrtF {
  static float Do(float a) { return Finish<V>(__builtin_sqrtf(In<V>(a))); }
};
template <u32 V>
struct RsqrtF {
  static float Do(float a) {
    return Finish<V>(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(In<V>(a)))));
  }
};
template <u32 V>
struct AbsF {
  static float Do(float a) { return Float(Bits(In<V>(a)) & 0x7fffffff); }
};
template <u32 V>
struct NegF {
  static float Do(float a) { return Float(Bits(In<V>(a)) ^ 0x80000000); }
};
struct CopysignF {
  static u32 Do(u32 a, u32 b) { return (a & 0x80000000) | (b & 0x7fffffff); }
  static u64 Do(u64 a, u64 b) { return (a & 0x8000000000000000) | (b & 0x7fffffffffffffff); }
};

// -0 is less than +0; a NaN loses against a number unless .NaN is given.
template <bool kIsMaximum>
inline u32 Extreme(u32 a, u32 b, bool nan_wins) {
  const float x = Float(a), y = Float(b);
  const u32 equal = kIsMaximum ? a & b : a | b;
  u32 r = x == y ? equal : b;
  r = (kIsMaximum ? x > y : x < y) ? a : r;
  const bool x_nan = x != x, y_nan = y != y;
  r = x_nan ? b : r;
  r = y_nan ? a : r;
  const bool nan = nan_wins ? x_nan | y_nan : x_nan & y_nan;
  return nan ? kNanF32 : r;
}
template <u32 V, bool kIsMaximum>
struct ExtremeF {
  static float Do(float a, float b) {
    return Float(Extreme<kIsMaximum>(Bits(In<V>(a)), Bits(In<V>(b)), (V & kNaN) != 0));
  }
};
// The rest of them reads the variant from Op::imm.
template <bool kIsMaximum>
struct ExtremeSlow {
  static u32 Prepare(u32 imm, u32 a) {
    const u32 flushed = (imm & kFtz) != 0 ? Bits(Flush(Float(a))) : a;
    return (imm & (kXorsign | kAbsolute)) != 0 ? flushed & 0x7fffffff : flushed;
  }
  static u32 DoImm(u32 imm, u32 a, u32 b) {
    const u32 r = Extreme<kIsMaximum>(Prepare(imm, a), Prepare(imm, b), (imm & kNaN) != 0);
    const u32 sign = (imm & kXorsign) != 0 ? (a ^ b) & 0x80000000 : 0;
    return r == kNanF32 ? r : r | sign;
  }
  static u32 DoImm(u32 imm, u32 a, u32 b, u32 c) {
    const bool nan = (imm & kNaN) != 0;
    const u32 r = Extreme<kIsMaximum>(Prepare(imm, a), Prepare(imm, b), nan);
    return Extreme<kIsMaximum>(r, Prepare(imm, c), nan);
  }
};
// a times the reciprocal of b, which is zero for divisors beyond 2^126, as documented.
template <u32 V>
struct DivApproxF {
  static float Do(float a0, float b0) {
    const float a = In<V>(a0), b = In<V>(b0);
    const float m = __builtin_fabsf(b);
    const bool lost = m > 0x1p126f && m < __builtin_inff();
    const float quotient = DivF<V>::Do(a, b), zero = a * __builtin_copysignf(0.0f, b);
    return Canonical(lost ? zero : quotient);
  }
};

// --- f64, to nearest ----------------------------------------------------------------------------
struct AddD {
  static double Do(double a, double b) { return Canonical(a + b, a, b); }
};
struct SubD {
  static double Do(double a, double b) { return Canonical(a - b, a, b); }
};
struct MulD {
  static double Do(double a, double b) { return Canonical(a * b, a, b); }
};
struct DivD {
  static double Do(double a, double b) { return Canonical(a / b, a, b); }
};
struct FmaD {
  static double Do(double a, double b, double c) { return Canonical(Fma(a, b, c), a, b, c); }
};
struct RcpD {
  static double Do(double a) { return Canonical(1.0 / a, a); }
};
struct SqrtD {
  static double Do(double a) { return Canonical(__builtin_sqrt(a), a); }
};
struct AbsD {
  static u64 Do(u64 a) { return a & 0x7fffffffffffffff; }
};
struct NegD {
  static u64 Do(u64 a) { return a ^ 0x8000000000000000; }
};
// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 look at and make the upper 32 bits only.
struct RcpApproxD {
  static double Do(double a) {
    const u64 b = Bits(a) & 0xffffffff00000000;
    const bool tiny = (b & 0x7ff0000000000000) == 0;
    const double x = Double(tiny ? b & 0x8000000000000000 : b);
    const double r = x != x ? Double(0x7fffffff00000000) : 1.0 / x;
    const u64 upper = Bits(r) & 0xffffffff00000000;
    return Double((upper & 0x7ff0000000000000) == 0 ? upper & 0x8000000000000000 : upper);
  }
};
struct RsqrtApproxD {
  static double Do(double a) {
    const u64 b = Bits(a) & 0xffffffff00000000;
    const bool tiny = (b & 0x7ff0000000000000) == 0;
    const double x = Double(tiny ? b & 0x8000000000000000 : b);
    const double r = 1.0 / __builtin_sqrt(x);
    return Double(r != r ? 0x7fffffff00000000 : Bits(r) & 0xffffffff00000000);
  }
};
// Without .ftz it is emulated in software, all bits of it: rsqrt(double) is this instruction alone
// and promises one unit in the last place.
struct RsqrtD {
  static double Do(double a) { return Canonical(1.0 / __builtin_sqrt(a), a); }
};
template <bool kMaximum>
struct ExtremeD {
  static double Do(double a, double b) {
    const u64 equal = kMaximum ? Bits(a) & Bits(b) : Bits(a) | Bits(b);
    double r = (kMaximum ? a > b : a < b) ? a : (a == b ? Double(equal) : b);
    r = a != a ? b : b != b ? a : r;
    return Canonical(r, a, b);
  }
};

// --- directed rounding, f32 ---------------------------------------------------------------------
inline float FinishDirected(u32 imm, float r) {
  r = FlushIf((imm & kImmFtz) != 0, r);
  return (imm & kImmSat) != 0 ? Saturate(r) : Canonical(r);
}
// The exact result, or one that rounds as it does, is `exact`: the largest magnitudes that count as
// tiny (see FlushTiny) depend on whether rounding goes away from zero.
inline float FinishTiny(u32 imm, float r, double exact) {
  const u32 rounding = imm & kRoundingMask;
  const bool away = rounding == (exact < 0 ? kRm : kRp);
  const double m = __builtin_fabs(exact);
  const bool tiny = away              ? m <= 0x1.fffffep-127
                    : rounding == kRn ? m < 0x1.ffffffp-127
                                      : m < 0x1p-126;
  const float flushed = Float(Bits(r) & 0x80000000);
  return FinishDirected(imm, (imm & kImmFtz) != 0 && tiny ? flushed : r);
}
// A sum of opposite numbers that is exactly zero is -0 when rounding down.
inline double DirectedSum(u32 rounding, double x, double y) {
  const double sum = AddOdd(x, y);
  const bool opposite = ((Bits(x) ^ Bits(y)) >> 63) != 0;
  return sum == 0 && rounding == kRm && opposite ? -0.0 : sum;
}
struct AddDirected {
  static float DoImm(u32 imm, float a, float b) {
    const bool ftz = (imm & kImmFtz) != 0;
    const u32 rounding = imm & kRoundingMask;
    const double x = FlushIf(ftz, a), y = FlushIf(ftz, b);
    return FinishDirected(imm, ToFloat(DirectedSum(rounding, x, y), rounding));
  }
};
struct SubDirected {
  static float DoImm(u32 imm, float a, float b) {
    return AddDirected::DoImm(imm, a, Float(Bits(b) ^ 0x80000000));
  }
};
struct MulDirected {
  static float DoImm(u32 imm, float a, float b) {
    const bool ftz = (imm & kImmFtz) != 0;
    const double x = FlushIf(ftz, a), y = FlushIf(ftz, b);
    return FinishTiny(imm, ToFloat(x * y, imm & kRoundingMask), x * y);
  }
};
struct FmaDirected {
  static float DoImm(u32 imm, float a, float b, float c) {
    const bool ftz = (imm & kImmFtz) != 0;
    const u32 rounding = imm & kRoundingMask;
    const double x = FlushIf(ftz, a), y = FlushIf(ftz, b), z = FlushIf(ftz, c);
    const double sum = DirectedSum(rounding, x * y, z);
    return FinishTiny(imm, ToFloat(sum, rounding), sum);
  }
};
// Moves the nearest result one step where `above` (it exceeds the exact value) or `below` says so.
inline float Step(u32 rounding, float f, bool above, bool below) {
  const u32 b = Bits(f);
  const bool negative = (b >> 31) != 0;
  const bool down = rounding == kRm || (rounding == kRz && !negative);
  const bool up = rounding == kRp || (rounding == kRz && negative);
  u32 r = b;
  if (down && above) r = negative ? b + 1 : b - 1;
  if (up && below) r = negative ? b - 1 : b + 1;
  return Float(r);
}
struct DivDirected {
  static float DoImm(u32 imm, float a, float b) {
    const bool ftz = (imm & kImmFtz) != 0;
    const double x = FlushIf(ftz, a), y = FlushIf(ftz, b);
    const float f = static_cast<float>(x / y);
    // f * y is exact in double; compare it with x, mirrored for negative divisors.
    const double product = f * y;
    const bool exact =
        y == 0 || __builtin_fabs(y) == __builtin_inf() || __builtin_fabs(x) == __builtin_inf();
    const bool above = !exact && (y > 0 ? product > x : product < x);
    const bool below = !exact && (y > 0 ? product < x : product > x);
    return FinishTiny(imm, Step(imm & kRoundingMask, f, above, below), x / y);
  }
};
struct RcpDirected {
  static float DoImm(u32 imm, float a) { return DivDirected::DoImm(imm, 1.0f, a); }
};
struct SqrtDirected {
  static float DoImm(u32 imm, float a) {
    const double x = FlushIf((imm & kImmFtz) != 0, a);
    const float f = static_cast<float>(__builtin_sqrt(x));
    const double square = static_cast<double>(f) * f;
    return FinishDirected(imm, Step(imm & kRoundingMask, f, square > x, square < x));
  }
};

// --- directed rounding, f64: the processor's own, one lane at a time ----------------------------
// The operations are written as assembly so that nothing moves them out of the rounding mode.
class RoundingMode {
 public:
  explicit RoundingMode(u32 rounding) : saved_(__builtin_ia32_stmxcsr()) {
    const u32 field = rounding == kRz ? 3 : rounding == kRm ? 1 : rounding == kRp ? 2 : 0;
    __builtin_ia32_ldmxcsr((saved_ & ~0x6000u) | field << 13);
  }
  ~RoundingMode() { __builtin_ia32_ldmxcsr(saved_); }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;

 private:
  u32 saved_;
};

enum class DOp { kAdd, kSub, kMul, kDiv, kSqrt, kRcp, kFma };

template <DOp kOp>
[[gnu::noinline]] double Rounded(u32 rounding, double a, double b, double c) {
  const RoundingMode mode(rounding);
  double r = a;
#ifdef __AVX__
#define TWO_OPERANDS(name) asm volatile("v" name " %2, %1, %0" : "=x"(r) : "x"(a), "x"(b))
#else
#define TWO_OPERANDS(name) asm volatile(name " %1, %0" : "+x"(r) : "x"(b))
#endif
  if constexpr (kOp == DOp::kAdd) TWO_OPERANDS("addsd");
  if constexpr (kOp == DOp::kSub) TWO_OPERANDS("subsd");
  if constexpr (kOp == DOp::kMul) TWO_OPERANDS("mulsd");
  if constexpr (kOp == DOp::kDiv || kOp == DOp::kRcp) TWO_OPERANDS("divsd");
#undef TWO_OPERANDS
  if constexpr (kOp == DOp::kSqrt) asm volatile("sqrtsd %1, %0" : "=x"(r) : "x"(a));
  if constexpr (kOp == DOp::kFma) {
#ifdef __FMA__
    asm volatile("vfmadd213sd %2, %1, %0" : "+x"(r) : "x"(b), "x"(c));
#else
    // The C library's fma obeys the rounding mode.
    double (*volatile fma)(double, double, double) = [](double x, double y, double z) {
      return __builtin_fma(x, y, z);
    };
    r = fma(a, b, c);
#endif
  }
  return r;
}

template <DOp kOp>
struct DirectedD {
  static double Make(u32 imm, double a, double b, double c) {
    const double r = Rounded<kOp>(imm & kRoundingMask, a, b, c);
    return (imm & kImmSat) != 0 ? Saturate(r) : r;
  }
  static double DoImm(u32 imm, double a) {
    if constexpr (kOp == DOp::kRcp) return Canonical(Make(imm, 1.0, a, 0), a);
    return Canonical(Make(imm, a, 0, 0), a);
  }
  static double DoImm(u32 imm, double a, double b) { return Canonical(Make(imm, a, b, 0), a, b); }
  static double DoImm(u32 imm, double a, double b, double c) {
    return Canonical(Make(imm, a, b, c), a, b, c);
  }
};

// --- pairs of f32 in a b64 ----------------------------------------------------------------------
template <class F>
struct PairF {
  static u64 Do(u64 a, u64 b) {
    const auto half = [&](int shift) {
      return u64{Bits(
                 F::Do(Float(static_cast<u32>(a >> shift)), Float(static_cast<u32>(b >> shift))))}
             << shift;
    };
    return half(0) | half(32);
  }
  static u64 Do(u64 a, u64 b, u64 c) {
    const auto half = [&](int shift) {
      return u64{Bits(F::Do(Float(static_cast<u32>(a >> shift)),
                            Float(static_cast<u32>(b >> shift)),
                            Float(static_cast<u32>(c >> shift))))}
             << shift;
    };
    return half(0) | half(32);
  }
};
template <class F>
struct PairDirected {
  static u64 DoImm(u32 imm, u64 a, u64 b) {
    const auto half = [&](int shift) {
      return u64{Bits(F::DoImm(imm, Float(static_cast<u32>(a >> shift)),
                               Float(static_cast<u32>(b >> shift))))}
             << shift;
    };
    return half(0) | half(32);
  }
  static u64 DoImm(u32 imm, u64 a, u64 b, u64 c) {
    const auto half = [&](int shift) {
      return u64{Bits(F::DoImm(imm, Float(static_cast<u32>(a >> shift)),
                               Float(static_cast<u32>(b >> shift)),
                               Float(static_cast<u32>(c >> shift))))}
             << shift;
    };
    return half(0) | half(32);
  }
};

#define F1(what, F, v) {Key(AluOp::what, Type::kF32, Type::kNone, v), kUnary<F<v>, F32>}
#define F2(what, F, v) {Key(AluOp::what, Type::kF32, Type::kNone, v), kBinary<F<v>, F32>}
#define F3(what, F, v) {Key(AluOp::what, Type::kF32, Type::kNone, v), kTernary<F<v>, F32>}
#define EACH(M, what, F) \
  M(what, F, 0), M(what, F, kFtz), M(what, F, kSat), M(what, F, (kFtz | kSat))
#define EXTREME(v)                                                                    \
  {Key(AluOp::kMin, Type::kF32, Type::kNone, v), kBinary<ExtremeF<v, false>, F32>}, { \
    Key(AluOp::kMax, Type::kF32, Type::kNone, v), kBinary<ExtremeF<v, true>, F32>     \
  }
#define MIXED(T)                                                                          \
  {Key(AluOp::kAddMixed, Type::kF32, Type::k##T), &Map2<AddDirected, F32, T, F32>},       \
      {Key(AluOp::kSubMixed, Type::kF32, Type::k##T), &Map2<SubDirected, F32, T, F32>}, { \
    Key(AluOp::kFmaMixed, Type::kF32, Type::k##T), &Map3<FmaDirected, F32, T, T, F32>     \
  }
#define PAIR2(what, F, v) \
  {Key(AluOp::what, Type::kF32x2, Type::kNone, v), kBinary<PairF<F<v>>, U64>}
#define PAIR3(what, F, v) \
  {Key(AluOp::what, Type::kF32x2, Type::kNone, v), kTernary<PairF<F<v>>, U64>}

constexpr Entry kEntries[] = {
    EACH(F2, kAdd, AddF),
    EACH(F2, kSub, SubF),
    EACH(F2, kMul, MulF),
    EACH(F3, kFma, FmaF),
    F2(kDiv, DivF, 0),
    F2(kDiv, DivF, kFtz),
    F1(kRcp, RcpF, 0),
    F1(kRcp, RcpF, kFtz),
    F1(kSqrt, SqrtF, 0),
    F1(kSqrt, SqrtF, kFtz),
    F1(kRsqrt, RsqrtF, 0),
    F1(kRsqrt, RsqrtF, kFtz),
    F1(kAbs, AbsF, 0),
    F1(kAbs, AbsF, kFtz),
    F1(kNeg, NegF, 0),
    F1(kNeg, NegF, kFtz),
    EXTREME(0),
    EXTREME(kFtz),
    EXTREME(kNaN),
    EXTREME((kFtz | kNaN)),
    {Key(AluOp::kExtremeSlow, Type::kF32), kBinary<ExtremeSlow<false>, U32>},
    {Key(AluOp::kExtremeSlow, Type::kF32, Type::kNone, kMaximum), kBinary<ExtremeSlow<true>, U32>},
    {Key(AluOp::kExtreme3Slow, Type::kF32), kTernary<ExtremeSlow<false>, U32>},
    {Key(AluOp::kExtreme3Slow, Type::kF32, Type::kNone, kMaximum),
     kTernary<ExtremeSlow<true>, U32>},
    F2(kDivApprox, DivApproxF, 0),
    F2(kDivApprox, DivApproxF, kFtz),
    MIXED(F16),
    MIXED(BF16),
    PAIR2(kAdd, AddF, 0),
    PAIR2(kAdd, AddF, kFtz),
    PAIR2(kSub, SubF, 0),
    PAIR2(kSub, SubF, kFtz),
    PAIR2(kMul, MulF, 0),
    PAIR2(kMul, MulF, kFtz),
    PAIR3(kFma, FmaF, 0),
    PAIR3(kFma, FmaF, kFtz),
    {Key(AluOp::kCopysign, Type::kF32), kBinary<CopysignF, U32>},
    {Key(AluOp::kCopysign, Type::kF64), kBinary<CopysignF, U64>},
    {Key(AluOp::kAdd, Type::kF64), kBinary<AddD, F64>},
    {Key(AluOp::kSub, Type::kF64), kBinary<SubD, F64>},
    {Key(AluOp::kMul, Type::kF64), kBinary<MulD, F64>},
    {Key(AluOp::kDiv, Type::kF64), kBinary<DivD, F64>},
    {Key(AluOp::kFma, Type::kF64), kTernary<FmaD, F64>},
    {Key(AluOp::kRcp, Type::kF64), kUnary<RcpD, F64>},
    {Key(AluOp::kRcp, Type::kF64, Type::kNone, kFtz), kUnary<RcpApproxD, F64>},
    {Key(AluOp::kRsqrt, Type::kF64), kUnary<RsqrtD, F64>},
    {Key(AluOp::kRsqrt, Type::kF64, Type::kNone, kFtz), kUnary<RsqrtApproxD, F64>},
    {Key(AluOp::kSqrt, Type::kF64), kUnary<SqrtD, F64>},
    {Key(AluOp::kAbs, Type::kF64), kUnary<AbsD, U64>},
    {Key(AluOp::kNeg, Type::kF64), kUnary<NegD, U64>},
    {Key(AluOp::kMin, Type::kF64), kBinary<ExtremeD<false>, F64>},
    {Key(AluOp::kMax, Type::kF64), kBinary<ExtremeD<true>, F64>},
    {Key(AluOp::kAddDirected, Type::kF32), kBinary<AddDirected, F32>},
    {Key(AluOp::kSubDirected, Type::kF32), kBinary<SubDirected, F32>},
    {Key(AluOp::kMulDirected, Type::kF32), kBinary<MulDirected, F32>},
    {Key(AluOp::kFmaDirected, Type::kF32), kTernary<FmaDirected, F32>},
    {Key(AluOp::kDivDirected, Type::kF32), kBinary<DivDirected, F32>},
    {Key(AluOp::kRcpDirected, Type::kF32), kUnary<RcpDirected, F32>},
    {Key(AluOp::kSqrtDirected, Type::kF32), kUnary<SqrtDirected, F32>},
    {Key(AluOp::kAddDirected, Type::kF32x2), kBinary<PairDirected<AddDirected>, U64>},
    {Key(AluOp::kSubDirected, Type::kF32x2), kBinary<PairDirected<SubDirected>, U64>},
    {Key(AluOp::kMulDirected, Type::kF32x2), kBinary<PairDirected<MulDirected>, U64>},
    {Key(AluOp::kFmaDirected, Type::kF32x2), kTernary<PairDirected<FmaDirected>, U64>},
    {Key(AluOp::kAddDirected, Type::kF64), kBinary<DirectedD<DOp::kAdd>, F64>},
    {Key(AluOp::kSubDirected, Type::kF64), kBinary<DirectedD<DOp::kSub>, F64>},
    {Key(AluOp::kMulDirected, Type::kF64), kBinary<DirectedD<DOp::kMul>, F64>},
    {Key(AluOp::kFmaDirected, Type::kF64), kTernary<DirectedD<DOp::kFma>, F64>},
    {Key(AluOp::kDivDirected, Type::kF64), kBinary<DirectedD<DOp::kDiv>, F64>},
    {Key(AluOp::kRcpDirected, Type::kF64), kUnary<DirectedD<DOp::kRcp>, F64>},
    {Key(AluOp::kSqrtDirected, Type::kF64), kUnary<DirectedD<DOp::kSqrt>, F64>},
};

}  // namespace

Entries FloatEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
