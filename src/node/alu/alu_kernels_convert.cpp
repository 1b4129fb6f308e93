// The common conversions, vectorised. Every other pair of types, rounding and saturation is in
// alu_slow_convert.cpp.
#include "node/alu/alu_float.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

using U8 = Plain<u8, u32>;
using S8 = Plain<s8, u32>;

// --- integer to integer: the low bits that both types have, extended to the result's register ---
template <class T>
struct Extend {
  template <class E>
  static u64 Do(E e) {
    return static_cast<u64>(static_cast<T>(e));
  }
};
struct Out16 {
  using Element = u32;
  static Element Store(u64 v) { return static_cast<u16>(v); }
};
struct Out32 {
  using Element = u32;
  static Element Store(u64 v) { return static_cast<u32>(v); }
};

// --- float to integer ---------------------------------------------------------------------------
template <u32 kRounding>
inline float Integral(float v) {
  if constexpr (kRounding == kRn) return __builtin_rintf(v);
  if constexpr (kRounding == kRz) return __builtin_truncf(v);
  if constexpr (kRounding == kRm) return __builtin_floorf(v);
  if constexpr (kRounding == kRp) return __builtin_ceilf(v);
}
template <u32 kRounding>
inline double Integral(double v) {
  if constexpr (kRounding == kRn) return __builtin_rint(v);
  if constexpr (kRounding == kRz) return __builtin_trunc(v);
  if constexpr (kRounding == kRm) return __builtin_floor(v);
  if constexpr (kRounding == kRp) return __builtin_ceil(v);
}

// Out of range saturates. NaN gives 0, but only the top bit where 64-bit formats are involved.
template <class V, bool kFromDouble, class F>
inline V Clamp(F v) {
  constexpr bool kSigned = static_cast<V>(-1) < 0;
  constexpr int kBits = 8 * sizeof(V) - (kSigned ? 1 : 0);
  constexpr V kHighest = static_cast<V>((u64{1} << (kBits - 1)) - 1 + (u64{1} << (kBits - 1)));
  constexpr V kLowest = kSigned ? static_cast<V>(u64{0} - (u64{1} << (kBits % 64))) : V{0};
  constexpr F kEnd = static_cast<F>(u64{1} << (kBits - 1)) * 2;
  constexpr F kBegin = kSigned ? -kEnd : F{0};
  constexpr V kForNan =
      kFromDouble || sizeof(V) == 8 ? static_cast<V>(u64{1} << (8 * sizeof(V) - 1)) : V{0};
  const bool inside = v >= kBegin && v < kEnd;
  const F safe = inside ? v : F{0};
  V r = static_cast<V>(safe);
  r = v >= kEnd ? kHighest : r;
  r = v < kBegin ? kLowest : r;
  return v == v ? r : kForNan;  // NOLINT(misc-redundant-expression): a NaN is not itself
}
template <class V, u32 kRounding>
struct ToInt {
  static V DoImm(u32 imm, float v) {
    return Clamp<V, false>(Integral<kRounding>(FlushIf((imm & kImmFtz) != 0, v)));
  }
  static V DoImm(u32, double v) { return Clamp<V, true>(Integral<kRounding>(v)); }
};

template <u32 kRounding>
struct ToIntegral {
  static float DoImm(u32 imm, float v) {
    const bool ftz = (imm & kImmFtz) != 0;
    const float r = Canonical(Integral<kRounding>(FlushIf(ftz, v)));
    return (imm & kImmSat) != 0 ? Saturate(r) : r;
  }
  static double DoImm(u32 imm, double v) {
    const double r = Canonical(Integral<kRounding>(v), v);
    return (imm & kImmSat) != 0 ? Saturate(r) : r;
  }
};

// --- to float, nearest --------------------------------------------------------------------------
struct ToF32 {
  template <class T>
  static float Do(T v) {
    return static_cast<float>(v);
  }
};
struct ToF64 {
  template <class T>
  static double Do(T v) {
    return static_cast<double>(v);
  }
};
template <u32 V>
struct SameF32 {
  static float Do(float v) {
    const float r = FlushIf < (V & kFtz) != 0 > (v);
    return (V & kSat) != 0 ? Saturate(r) : r;
  }
};
struct Widen {  // f16, bf16 to f32
  static float Do(float v) { return v; }
};
struct Narrow {  // f64 to f32
  static float Do(double v) { return Canonical(static_cast<float>(v)); }
};
template <class T>
struct PackPair {
  static u32 Do(float high, float low) { return T::Store(high) << 16 | T::Store(low); }
};

// --- pairs of 8-bit floats ----------------------------------------------------------------------
struct E4m3 {
  static constexpr int kMantissa = 3, kBias = 7;
  static constexpr u32 kLargest = 0x7e;
};
struct E5m2 {
  static constexpr int kMantissa = 2, kBias = 15;
  static constexpr u32 kLargest = 0x7b;
};
// To nearest and never beyond the largest number; the NaN of both formats is 0x7f.
template <class S>
inline u32 ToByte(u32 imm, float f) {
  constexpr int kShift = 23 - S::kMantissa;
  // A unit of this is a unit of a subnormal: adding it rounds.
  constexpr u32 kMagic = (127u + 24 - S::kBias - S::kMantissa) << 23;
  const u32 b = Bits(f), sign = (b >> 24) & 0x80, magnitude = b & 0x7fffffff;
  const u32 half = (1u << (kShift - 1)) - 1 + ((magnitude >> kShift) & 1);
  const u32 normal = (magnitude - ((127u - S::kBias) << 23) + half) >> kShift;
  const u32 subnormal = Bits(Float(magnitude) + Float(kMagic)) - kMagic;
  u32 r = magnitude < (128u - S::kBias) << 23 ? subnormal : normal;
  r = r > S::kLargest ? S::kLargest : r;
  const u32 negative = (imm & kImmRelu) != 0 ? 0 : r | sign;
  r = sign != 0 ? negative : r;
  return magnitude > 0x7f800000 ? 0x7f : r;
}
template <class S>
struct BytePair {
  static u32 DoImm(u32 imm, float high, float low) {
    return ToByte<S>(imm, high) << 8 | ToByte<S>(imm, low);
  }
  static u32 DoImm(u32 imm, u32 halves) {
    return DoImm(imm, FromHalf(halves >> 16), FromHalf(halves & 0xffff));
  }
};
// The bits as those of an f16 are too small by a power of two, which a product mends.
template <class S>
struct Halved {
  static u32 One(u32 imm, u32 byte) {
    constexpr float kScale = S::kBias == 15 ? 1.0f : 256.0f;
    const u32 magnitude = byte & 0x7f, sign = (byte & 0x80) << 8;
    u32 r = ToHalf(FromHalf(magnitude << (10 - S::kMantissa)) * kScale);
    const u32 negative = (imm & kImmRelu) != 0 ? 0 : r | sign;
    r = sign != 0 ? negative : r;
    const bool nan = S::kBias == 15 ? magnitude > 0x7c : magnitude == 0x7f;
    return nan ? kNanF16 : r;
  }
  static u32 DoImm(u32 imm, u32 pair) {
    return One(imm, pair >> 8 & 0xff) << 16 | One(imm, pair & 0xff);
  }
};

#define BYTES(format, S)                                                                       \
  {Key(AluOp::kSmallPack, Type::kB16, Type::kF32, format), &Map2<BytePair<S>, U32, F32, F32>}, \
      {Key(AluOp::kSmallPack, Type::kB16, Type::kF16x2, format), kUnary<BytePair<S>, U32>}, {  \
    Key(AluOp::kSmallUnpack, Type::kF16x2, Type::kB16, format), kUnary<Halved<S>, U32>         \
  }
#define EXTEND(T, t)                                                                            \
  {Key(AluOp::kExtend, Type::kU16, Type::k##T, 0), &Map1<Extend<t>, Out16, U32>},               \
      {Key(AluOp::kExtend, Type::kU32, Type::k##T, 0), &Map1<Extend<t>, Out32, U32>},           \
      {Key(AluOp::kExtend, Type::kU64, Type::k##T, 0), &Map1<Extend<t>, U64, U32>},             \
      {Key(AluOp::kExtend, Type::kU16, Type::k##T, kFromWide), &Map1<Extend<t>, Out16, U64>},   \
      {Key(AluOp::kExtend, Type::kU32, Type::k##T, kFromWide), &Map1<Extend<t>, Out32, U64>}, { \
    Key(AluOp::kExtend, Type::kU64, Type::k##T, kFromWide), &Map1<Extend<t>, U64, U64>          \
  }

#define TO_INT1(D, S, r) \
  {Key(AluOp::kFloatToInt, Type::k##D, Type::k##S, r), &Map1<ToInt<D::Value, r>, D, S>}
#define TO_INT(D, S) TO_INT1(D, S, kRn), TO_INT1(D, S, kRz), TO_INT1(D, S, kRm), TO_INT1(D, S, kRp)
#define TO_INTS(S) TO_INT(U32, S), TO_INT(S32, S), TO_INT(U64, S), TO_INT(S64, S)
#define TO_INTEGRAL1(T, r) \
  {Key(AluOp::kFloatToIntegral, Type::k##T, Type::k##T, r), kUnary<ToIntegral<r>, T>}
#define TO_INTEGRAL(T) \
  TO_INTEGRAL1(T, kRn), TO_INTEGRAL1(T, kRz), TO_INTEGRAL1(T, kRm), TO_INTEGRAL1(T, kRp)
#define FROM_INT(S)                                                          \
  {Key(AluOp::kIntToFloat, Type::kF32, Type::k##S), &Map1<ToF32, F32, S>}, { \
    Key(AluOp::kIntToFloat, Type::kF64, Type::k##S), &Map1<ToF64, F64, S>    \
  }
#define SAME_F32(v) {Key(AluOp::kFloatToFloat, Type::kF32, Type::kF32, v), kUnary<SameF32<v>, F32>}

constexpr Entry kEntries[] = {
    EXTEND(U8, u8),
    EXTEND(S8, s8),
    EXTEND(U16, u16),
    EXTEND(S16, s16),
    EXTEND(U32, u32),
    EXTEND(S32, s32),
    {Key(AluOp::kExtend, Type::kU64, Type::kU64, kFromWide), &Map1<Extend<u64>, U64, U64>},
    TO_INTS(F32),
    TO_INTS(F64),
    TO_INTEGRAL(F32),
    TO_INTEGRAL(F64),
    FROM_INT(U8),
    FROM_INT(S8),
    FROM_INT(U16),
    FROM_INT(S16),
    FROM_INT(U32),
    FROM_INT(S32),
    FROM_INT(U64),
    FROM_INT(S64),
    SAME_F32(0),
    SAME_F32(kFtz),
    SAME_F32(kSat),
    SAME_F32((kFtz | kSat)),
    {Key(AluOp::kFloatToFloat, Type::kF32, Type::kF16), &Map1<Widen, F32, F16>},
    {Key(AluOp::kFloatToFloat, Type::kF32, Type::kBF16), &Map1<Widen, F32, BF16>},
    {Key(AluOp::kFloatToFloat, Type::kF16, Type::kF32), &Map1<Widen, F16, F32>},
    {Key(AluOp::kFloatToFloat, Type::kBF16, Type::kF32), &Map1<Widen, BF16, F32>},
    {Key(AluOp::kFloatToFloat, Type::kF32, Type::kF64), &Map1<Narrow, F32, F64>},
    {Key(AluOp::kFloatToFloat, Type::kF64, Type::kF32), &Map1<ToF64, F64, F32>},
    {Key(AluOp::kFloatPack, Type::kF16x2, Type::kF32), &Map2<PackPair<F16>, U32, F32, F32>},
    {Key(AluOp::kFloatPack, Type::kBF16x2, Type::kF32), &Map2<PackPair<BF16>, U32, F32, F32>},
    BYTES(kE4m3, E4m3),
    BYTES(kE5m2, E5m2),
};

}  // namespace

Entries ConvertEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
