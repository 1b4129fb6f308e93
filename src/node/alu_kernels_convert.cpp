// Conversions. The common ones are vectorised; every other pair of types, rounding and saturation
// goes through one exact form (sign, exponent, 64-bit mantissa) and one rounding routine.
#include "node/alu_float.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

using U8 = Plain<u8, u32>;
using S8 = Plain<s8, u32>;

// --- integer to integer: the low bits that both types have, extended to the result's register
// -----
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
  V r;
  if constexpr (sizeof(V) < 4) {
    r = static_cast<V>(static_cast<s32>(safe));
  } else {
    r = static_cast<V>(safe);
  }
  r = v >= kEnd ? kHighest : r;
  r = v < kBegin ? kLowest : r;
  return v == v ? r : kForNan;
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

// --- everything else ----------------------------------------------------------------------------
struct Format {
  int mantissa;  // explicit bits
  int exponent;
  bool finite_only = false;  // e4m3: no infinity, one NaN per sign
};
constexpr Format kFormatF16{10, 5}, kFormatBf16{7, 8}, kFormatF32{23, 8}, kFormatF64{52, 11},
    kFormatTf32{10, 8}, kFormatE4m3{3, 4, true}, kFormatE5m2{2, 5};

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

Exact Decode(u64 bits, Format format) {
  const u64 fraction = bits & ((u64{1} << format.mantissa) - 1);
  const u32 top = (1u << format.exponent) - 1;
  const u32 biased = static_cast<u32>(bits >> format.mantissa) & top;
  const bool negative = ((bits >> (format.mantissa + format.exponent)) & 1) != 0;
  const int bias = (1 << (format.exponent - 1)) - 1;
  if (format.finite_only) {
    if (biased == top && fraction == (u64{1} << format.mantissa) - 1) {
      Exact r;
      r.nan = true;
      return r;
    }
  } else if (biased == top) {
    Exact r;
    r.negative = negative;
    r.nan = fraction != 0;
    r.infinite = fraction == 0;
    return r;
  }
  const u64 hidden = biased == 0 ? 0 : u64{1} << format.mantissa;
  const int exponent = (biased == 0 ? 1 : static_cast<int>(biased)) - bias - format.mantissa + 63;
  return Normalised(negative, hidden | fraction, exponent);
}

u64 NanOf(Format format) {
  if (format.mantissa == 52) return 0x7fffffffffffffff;
  return (u64{1} << (format.mantissa + format.exponent)) - 1;
}

u64 Encode(const Exact& x, Format format, u32 rounding, bool satfinite) {
  if (x.nan) return NanOf(format);
  const u64 sign = u64{x.negative} << (format.mantissa + format.exponent);
  const u64 infinity = ((u64{1} << format.exponent) - 1) << format.mantissa;
  const u64 largest =
      format.finite_only ? infinity | ((u64{1} << format.mantissa) - 2) : infinity - 1;
  const u64 overflow = satfinite ? largest : format.finite_only ? NanOf(format) : infinity;
  if (x.infinite) return sign | overflow;
  if (x.mantissa == 0) return sign;
  const int bias = (1 << (format.exponent - 1)) - 1;
  int shift = 63 - format.mantissa;
  int biased = x.exponent + bias;
  if (biased < 1) {
    shift += 1 - biased;
    biased = 1;
  }
  // kept: with the hidden bit; rest: what is cut off, compared with one half.
  u64 kept = 0, rest = 0, half = 0;
  if (shift < 64) {
    kept = x.mantissa >> shift;
    half = u64{1} << (shift - 1);
    rest = x.mantissa & ((half << 1) - 1);
  } else if (shift == 64) {
    rest = x.mantissa;
    half = u64{1} << 63;
  } else {
    rest = 1;
    half = 2;
  }
  bool up = false;
  switch (rounding) {
    case kRn:
      up = rest > half || (rest == half && (kept & 1) != 0);
      break;
    case kRna:
      up = rest >= half;
      break;
    case kRm:
      up = x.negative && rest != 0;
      break;
    case kRp:
      up = !x.negative && rest != 0;
      break;
    default:
      break;
  }
  kept += up ? 1 : 0;
  const u64 r = (static_cast<u64>(biased - 1) << format.mantissa) + kept;
  if (r > largest || biased > (1 << format.exponent)) {
    const bool to_infinity = rounding == kRn || rounding == kRna ||
                             (rounding == kRm && x.negative) || (rounding == kRp && !x.negative);
    return sign | (to_infinity ? overflow : largest);
  }
  return sign | r;
}

inline Exact Zero() { return Exact{}; }

// .relu, .sat and .ftz in their order; the result's own .ftz follows the encoding.
Exact Prepare(Exact x, u32 imm, Format source) {
  const bool f32 = source.mantissa == 23;
  if ((imm & kImmFtz) != 0 && f32 && !x.nan && !x.infinite && x.exponent < -126) x.mantissa = 0;
  if ((imm & kImmRelu) != 0 && x.negative && !x.nan) return Zero();
  if ((imm & kImmSat) != 0) {
    if (x.nan || x.negative) return Zero();
    if (x.infinite || (x.mantissa != 0 && x.exponent >= 0)) {
      return Normalised(false, u64{1} << 63, 0);
    }
  }
  return x;
}

Format FormatOf(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF16x2:
      return kFormatF16;
    case Type::kBF16:
    case Type::kBF16x2:
      return kFormatBf16;
    case Type::kF64:
      return kFormatF64;
    case Type::kTF32:
      return kFormatTf32;
    default:
      return kFormatF32;
  }
}

u64 LoadElement(const Lanes& lanes, Slot slot, int lane, bool wide) {
  return wide ? Source<u64>(lanes, slot)[lane] : Source<u32>(lanes, slot)[lane];
}
void StoreElement(const Lanes& lanes, Slot slot, int lane, bool wide, u64 v) {
  if (wide) {
    Target<u64>(lanes, slot)[lane] = v;
  } else {
    Target<u32>(lanes, slot)[lane] = static_cast<u32>(v);
  }
}

// Value of an integer of the given type as a 128-bit number.
s128 IntegerOf(Type type, u64 e) {
  switch (type) {
    case Type::kU8:
      return static_cast<u8>(e);
    case Type::kS8:
      return static_cast<s8>(e);
    case Type::kU16:
      return static_cast<u16>(e);
    case Type::kS16:
      return static_cast<s16>(e);
    case Type::kU32:
      return static_cast<u32>(e);
    case Type::kS32:
      return static_cast<s32>(e);
    case Type::kS64:
      return static_cast<s64>(e);
    default:
      return static_cast<s128>(e);
  }
}
int BitsOf(Type type) {
  switch (type) {
    case Type::kU8:
    case Type::kS8:
      return 8;
    case Type::kU16:
    case Type::kS16:
      return 16;
    case Type::kU32:
    case Type::kS32:
      return 32;
    default:
      return 64;
  }
}
bool IsSignedInt(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}
bool IsFloat(Type type) {
  return type == Type::kF16 || type == Type::kBF16 || type == Type::kF32 || type == Type::kF64 ||
         type == Type::kTF32;
}
u64 ClampTo(Type type, s128 v) {
  const int bits = BitsOf(type);
  const bool is_signed = IsSignedInt(type);
  const s128 one = 1;
  const s128 high = (one << (is_signed ? bits - 1 : bits)) - 1;
  const s128 low = is_signed ? -(one << (bits - 1)) : 0;
  v = v > high ? high : v < low ? low : v;
  return static_cast<u64>(v) & static_cast<u64>((one << bits) - 1);
}

Type SourceType(u32 imm) { return static_cast<Type>((imm >> kImmSourceShift) & 0xff); }
Type ResultType(u32 imm) { return static_cast<Type>((imm >> kImmResultShift) & 0xff); }

void IntToIntSat(const Lanes& lanes, const Op& op, u32 mask) {
  const Type from = SourceType(op.imm), to = ResultType(op.imm);
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    u64 r = ClampTo(to, IntegerOf(from, LoadElement(lanes, op.s[0], l, BitsOf(from) == 64)));
    if (to == Type::kS8) r = static_cast<u16>(static_cast<s8>(r));
    StoreElement(lanes, op.d, l, BitsOf(to) == 64, r);
  }
}

u64 FinishSlow(u64 r, u32 imm, Type to) {
  if (to == Type::kTF32) return r << 13;
  if (to == Type::kF32 && (imm & kImmFtz) != 0 && (r & 0x7f800000) == 0) return r & 0x80000000;
  return r;
}

// Any integer or float to any float.
void ToFloatSlow(const Lanes& lanes, const Op& op, u32 mask) {
  const Type from = SourceType(op.imm), to = ResultType(op.imm);
  const bool from_float = IsFloat(from);
  const bool from_wide = from_float ? from == Type::kF64 : BitsOf(from) == 64;
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const u64 e = LoadElement(lanes, op.s[0], l, from_wide);
    Exact x;
    if (from_float) {
      x = Prepare(Decode(e, FormatOf(from)), op.imm, FormatOf(from));
    } else {
      const s128 v = IntegerOf(from, e);
      x = Prepare(Normalised(v < 0, static_cast<u64>(v < 0 ? -v : v), 63), op.imm, kFormatF64);
    }
    const u64 r = Encode(x, FormatOf(to), op.imm & kRoundingMask, (op.imm & kImmSatfinite) != 0);
    StoreElement(lanes, op.d, l, to == Type::kF64, FinishSlow(r, op.imm, to));
  }
}

// cvt.f16x2.f32 d, a, b with other roundings, .relu or .satfinite: a goes to the upper half.
void PackSlow(const Lanes& lanes, const Op& op, u32 mask) {
  const Format to = FormatOf(ResultType(op.imm));
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = Source<u32>(lanes, op.s[1]);
  u32* d = Target<u32>(lanes, op.d);
  const auto half = [&](u32 e) {
    return static_cast<u32>(Encode(Prepare(Decode(e, kFormatF32), op.imm, kFormatF32), to,
                                   op.imm & kRoundingMask, (op.imm & kImmSatfinite) != 0));
  };
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) != 0) d[l] = half(a[l]) << 16 | half(b[l]);
  }
}

// To a pair of 8-bit floats: from two f32, or from one pair of halves (kF16x2, kBF16x2).
template <bool kE4m3>
void ToFp8(const Lanes& lanes, const Op& op, u32 mask) {
  constexpr Format kTo = kE4m3 ? kFormatE4m3 : kFormatE5m2;
  const Format from = FormatOf(SourceType(op.imm));
  const bool packed = from.mantissa != 23;
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = packed ? a : Source<u32>(lanes, op.s[1]);
  u32* d = Target<u32>(lanes, op.d);
  const auto byte = [&](u32 e) {
    return static_cast<u32>(
        Encode(Prepare(Decode(e, from), op.imm, from), kTo, op.imm & kRoundingMask, true));
  };
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const u32 high = packed ? a[l] >> 16 : a[l], low = packed ? b[l] & 0xffff : b[l];
    d[l] = byte(high) << 8 | byte(low);
  }
}

template <bool kE4m3>
void FromFp8(const Lanes& lanes, const Op& op, u32 mask) {
  constexpr Format kFrom = kE4m3 ? kFormatE4m3 : kFormatE5m2;
  const Format to = FormatOf(ResultType(op.imm));
  const u32* a = Source<u32>(lanes, op.s[0]);
  u32* d = Target<u32>(lanes, op.d);
  const auto half = [&](u32 e) {
    return static_cast<u32>(
        Encode(Prepare(Decode(e & 0xff, kFrom), op.imm, kFrom), to, kRn, false));
  };
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) != 0) d[l] = half(a[l] >> 8) << 16 | half(a[l]);
  }
}

// cvt.pack.sat: 16-bit results fill the register; 8-bit ones push c up by two bytes.
void PackSat(const Lanes& lanes, const Op& op, u32 mask) {
  const Type to = ResultType(op.imm);
  const int bits = BitsOf(to);
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = Source<u32>(lanes, op.s[1]);
  const u32* c = op.s[2] == kNoSlot ? nullptr : Source<u32>(lanes, op.s[2]);
  u32* d = Target<u32>(lanes, op.d);
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const u32 high = static_cast<u32>(ClampTo(to, static_cast<s32>(a[l])));
    const u32 low = static_cast<u32>(ClampTo(to, static_cast<s32>(b[l])));
    d[l] = (c != nullptr && bits == 8 ? c[l] << 16 : 0) | high << bits | low;
  }
}

#define EXTEND(T, t)                                                                           \
  {Key(What::kExtend, Type::kU16, Type::k##T, 0), &Map1<Extend<t>, Out16, U32>},               \
      {Key(What::kExtend, Type::kU32, Type::k##T, 0), &Map1<Extend<t>, Out32, U32>},           \
      {Key(What::kExtend, Type::kU64, Type::k##T, 0), &Map1<Extend<t>, U64, U32>},             \
      {Key(What::kExtend, Type::kU16, Type::k##T, kFromWide), &Map1<Extend<t>, Out16, U64>},   \
      {Key(What::kExtend, Type::kU32, Type::k##T, kFromWide), &Map1<Extend<t>, Out32, U64>}, { \
    Key(What::kExtend, Type::kU64, Type::k##T, kFromWide), &Map1<Extend<t>, U64, U64>          \
  }

#define TO_INT1(D, S, r) \
  {Key(What::kFloatToInt, Type::k##D, Type::k##S, r), &Map1<ToInt<D::Value, r>, D, S>}
#define TO_INT(D, S) TO_INT1(D, S, kRn), TO_INT1(D, S, kRz), TO_INT1(D, S, kRm), TO_INT1(D, S, kRp)
#define TO_INTS(S)                                                                              \
  TO_INT(U8, S), TO_INT(S8, S), TO_INT(U16, S), TO_INT(S16, S), TO_INT(U32, S), TO_INT(S32, S), \
      TO_INT(U64, S), TO_INT(S64, S)
#define TO_INTEGRAL1(T, r) \
  {Key(What::kFloatToIntegral, Type::k##T, Type::k##T, r), kUnary<ToIntegral<r>, T>}
#define TO_INTEGRAL(T) \
  TO_INTEGRAL1(T, kRn), TO_INTEGRAL1(T, kRz), TO_INTEGRAL1(T, kRm), TO_INTEGRAL1(T, kRp)
#define FROM_INT(S)                                                         \
  {Key(What::kIntToFloat, Type::kF32, Type::k##S), &Map1<ToF32, F32, S>}, { \
    Key(What::kIntToFloat, Type::kF64, Type::k##S), &Map1<ToF64, F64, S>    \
  }
#define SAME_F32(v) {Key(What::kFloatToFloat, Type::kF32, Type::kF32, v), kUnary<SameF32<v>, F32>}

constexpr Entry kEntries[] = {
    EXTEND(U8, u8),
    EXTEND(S8, s8),
    EXTEND(U16, u16),
    EXTEND(S16, s16),
    EXTEND(U32, u32),
    EXTEND(S32, s32),
    {Key(What::kExtend, Type::kU64, Type::kU64, kFromWide), &Map1<Extend<u64>, U64, U64>},
    {Key(What::kIntToIntSat, Type::kNone), &IntToIntSat},
    TO_INTS(F32),
    TO_INTS(F64),
    TO_INTS(F16),
    TO_INTS(BF16),
    TO_INTEGRAL(F32),
    TO_INTEGRAL(F64),
    TO_INTEGRAL(F16),
    TO_INTEGRAL(BF16),
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
    {Key(What::kFloatToFloat, Type::kF32, Type::kF16), &Map1<Widen, F32, F16>},
    {Key(What::kFloatToFloat, Type::kF32, Type::kBF16), &Map1<Widen, F32, BF16>},
    {Key(What::kFloatToFloat, Type::kF16, Type::kF32), &Map1<Widen, F16, F32>},
    {Key(What::kFloatToFloat, Type::kBF16, Type::kF32), &Map1<Widen, BF16, F32>},
    {Key(What::kFloatToFloat, Type::kF32, Type::kF64), &Map1<Narrow, F32, F64>},
    {Key(What::kFloatToFloat, Type::kF64, Type::kF32), &Map1<ToF64, F64, F32>},
    {Key(What::kFloatPack, Type::kF16x2, Type::kF32), &Map2<PackPair<F16>, U32, F32, F32>},
    {Key(What::kFloatPack, Type::kBF16x2, Type::kF32), &Map2<PackPair<BF16>, U32, F32, F32>},
    {Key(What::kFloatToFloatSlow, Type::kNone), &ToFloatSlow},
    {Key(What::kFloatPackSlow, Type::kNone), &PackSlow},
    {Key(What::kFp8Pack, Type::kNone, Type::kNone, 0), &ToFp8<true>},
    {Key(What::kFp8Pack, Type::kNone, Type::kNone, 1), &ToFp8<false>},
    {Key(What::kFp8Unpack, Type::kNone, Type::kNone, 0), &FromFp8<true>},
    {Key(What::kFp8Unpack, Type::kNone, Type::kNone, 1), &FromFp8<false>},
    {Key(What::kPackSat, Type::kNone), &PackSat},
};

}  // namespace

Entries ConvertEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
