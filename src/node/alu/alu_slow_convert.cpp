// Conversions between any two types with any rounding and saturation, one lane at a time. The
// common ones have vectorised handlers in alu_kernels_convert.cpp; these take the rest, and small
// floats (fp8, fp6, fp4, ue8m0). Compiled once: vectors would gain nothing here.
#define ALLRANKS_ISA isa_any
#include "node/alu/alu_exact.h"

namespace allranks::node::alu::isa_any {
namespace {

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

int BitsOf(Type type) {
  switch (type) {
    case Type::kU8:
    case Type::kS8:
    case Type::kB8:
      return 8;
    case Type::kU16:
    case Type::kS16:
    case Type::kB16:
      return 16;
    case Type::kU32:
    case Type::kS32:
    case Type::kB32:
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
// Value of the low bits of `e` as a number of the given type.
s128 IntegerOf(int bits, bool is_signed, u64 e) {
  const s128 low = static_cast<s128>(e & (~u64{0} >> (64 - bits)));
  return is_signed && (low >> (bits - 1)) != 0 ? low - (s128{1} << bits) : low;
}
s128 ClampTo(int bits, bool is_signed, s128 v) {
  const s128 one = 1;
  const s128 high = (one << (is_signed ? bits - 1 : bits)) - 1;
  const s128 low = is_signed ? -(one << (bits - 1)) : 0;
  return v > high ? high : v < low ? low : v;
}

Type SourceType(u32 imm) { return static_cast<Type>((imm >> kImmSourceShift) & 0xff); }
Type ResultType(u32 imm) { return static_cast<Type>((imm >> kImmResultShift) & 0xff); }
// The result as it lies in a register that may be wider: signed ones are extended.
u64 InRegister(s128 v, u32 imm) {
  const u32 bytes = (imm >> kImmExtendShift) & 15;
  return static_cast<u64>(v) & (~u64{0} >> (64 - 8 * bytes));
}
bool WideResult(u32 imm) { return ((imm >> kImmExtendShift) & 15) == 8; }

// With .sat, or into registers wider than an unsigned type.
void IntToIntSat(const Lanes& lanes, const Op& op, u32 mask) {
  const Type from = SourceType(op.imm), to = ResultType(op.imm);
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const u64 e = LoadElement(lanes, op.s[0], l, (op.imm & kImmWideSource) != 0);
    const s128 v = IntegerOf(BitsOf(from), IsSignedInt(from), e);
    const s128 r = (op.imm & kImmSat) != 0
                       ? ClampTo(BitsOf(to), IsSignedInt(to), v)
                       : IntegerOf(BitsOf(to), IsSignedInt(to), static_cast<u64>(v));
    StoreElement(lanes, op.d, l, WideResult(op.imm), InRegister(r, op.imm));
  }
}

// Out of range saturates. NaN gives 0, but the top bit alone where 64-bit types are involved.
void FloatToIntSlow(const Lanes& lanes, const Op& op, u32 mask) {
  const Type from = SourceType(op.imm), to = ResultType(op.imm);
  const int bits = BitsOf(to);
  const s128 one = 1;
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const u64 e = LoadElement(lanes, op.s[0], l, (op.imm & kImmWideSource) != 0);
    const u32 flush = op.imm & kImmFtz;
    const Exact x = Prepare(Decode(e, FormatOf(from)), flush, from == Type::kF32);
    s128 v = 0;
    if (x.nan) {
      v = from == Type::kF64 || bits == 64 ? one << (bits - 1) : 0;
      if (IsSignedInt(to)) v = -v;
    } else {
      const bool huge = x.infinite || x.exponent > 63;
      v = huge ? one << 64 : static_cast<s128>(IntegralMagnitude(x, op.imm & kRoundingMask));
      v = ClampTo(bits, IsSignedInt(to), x.negative ? -v : v);
    }
    StoreElement(lanes, op.d, l, WideResult(op.imm), InRegister(v, op.imm));
  }
}

// Whether an f32 is still subnormal when rounded to 24 bits as if exponents had no lower bound,
// which is what .ftz flushes.
bool TinySingle(const Exact& x, u32 rounding) {
  if (x.nan || x.infinite || x.exponent >= -126) return false;
  if (x.mantissa == 0 || x.exponent < -127) return true;
  const Cut cut = CutOff(x.mantissa, 40);
  return cut.kept + (RoundsUp(rounding, x.negative, cut) ? 1 : 0) < u64{1} << 24;
}

u64 FinishSlow(u64 r, const Exact& x, u32 imm, Type to) {
  if (to == Type::kTF32) return r << 13;
  if (to == Type::kF32 && (imm & kImmFtz) != 0 && TinySingle(x, imm & kRoundingMask)) {
    return r & 0x80000000;
  }
  return r;
}

// f64 keeps sign and payload of an f32's NaN.
u64 WidenedNan(u64 e) { return (e & 0x80000000) << 32 | 0x7ff8000000000000 | (e & 0x7fffff) << 29; }

// Any integer or float to any float; with kImmIntegral to an integer in the same format.
void ToFloatSlow(const Lanes& lanes, const Op& op, u32 mask) {
  const Type from = SourceType(op.imm), to = ResultType(op.imm);
  const u32 rounding = op.imm & kRoundingMask;
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const u64 e = LoadElement(lanes, op.s[0], l, (op.imm & kImmWideSource) != 0);
    Exact x;
    if (IsFloat(from)) {
      x = Decode(e, FormatOf(from));
      if ((op.imm & kImmIntegral) != 0 && !x.nan && !x.infinite && x.exponent < 63) {
        x = Normalised(x.negative, static_cast<u64>(IntegralMagnitude(x, rounding)), 63);
      }
      x = Prepare(x, op.imm, from == Type::kF32);
    } else {
      const s128 v = IntegerOf(BitsOf(from), IsSignedInt(from), e);
      x = Prepare(Normalised(v < 0, static_cast<u64>(v < 0 ? -v : v), 63), op.imm, false);
    }
    u64 r = Encode(x, FormatOf(to), rounding, (op.imm & kImmSatfinite) != 0);
    r = x.nan && to == Type::kF64 && from == Type::kF32 ? WidenedNan(e)
                                                        : FinishSlow(r, x, op.imm, to);
    StoreElement(lanes, op.d, l, WideResult(op.imm), r);
  }
}

// cvt.f16x2.f32 d, a, b with other roundings, .relu or .satfinite: a goes to the upper half, and
// has the upper half of the random bits.
void PackSlow(const Lanes& lanes, const Op& op, u32 mask) {
  const Format to = FormatOf(ResultType(op.imm));
  const u32 rounding = op.imm & kRoundingMask;
  const int random_bits = 23 - to.mantissa;
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = Source<u32>(lanes, op.s[1]);
  const u32* random = rounding == kRs ? Source<u32>(lanes, op.s[2]) : nullptr;
  u32* d = Target<u32>(lanes, op.d);
  const auto half = [&](u32 e, u32 bits) {
    return static_cast<u32>(Encode(Prepare(Decode(e, kFormatF32), op.imm, true), to, rounding,
                                   (op.imm & kImmSatfinite) != 0,
                                   {bits & ((1u << random_bits) - 1), random_bits}));
  };
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const u32 bits = random != nullptr ? random[l] : 0;
    d[l] = half(a[l], bits >> 16) << 16 | half(b[l], bits & 0xffff);
  }
}

// --- small floats -------------------------------------------------------------------------------
struct Small {
  Format format;
  int bits;  // of one in a pair: e2m1 are packed as nibbles, six-bit ones lie in bytes
};
Small SmallOf(u32 imm) {
  using Top = Format::Top;
  switch ((imm >> kImmResultShift) & 0xff) {
    case kE4m3:
      return {{3, 4, Top::kOneNan}, 8};
    case kE5m2:
      return {{2, 5, Top::kInfinities}, 8};
    case kE2m3:
      return {{3, 2, Top::kNumbers}, 8};
    case kE3m2:
      return {{2, 3, Top::kNumbers}, 8};
    default:
      return {{1, 2, Top::kNumbers}, 4};
  }
}
bool IsScale(u32 imm) { return ((imm >> kImmResultShift) & 0xff) == kUe8m0; }

// ue8m0 is an exponent: the magnitude's, rounded up or down; 0xff is NaN.
u32 ToScale(const Exact& x, u32 imm) {
  if (x.nan) return 0xff;
  const u32 overflow = (imm & kImmSatfinite) != 0 ? 0xfe : 0xff;
  if (x.infinite) return overflow;
  if (x.mantissa == 0) return 0;
  const bool up = (imm & kRoundingMask) == kRp && x.mantissa != u64{1} << 63;
  const int biased = x.exponent + 127 + (up ? 1 : 0);
  return biased < 0 ? 0 : biased > 0xfe ? overflow : static_cast<u32>(biased);
}

u32 ToSmall(u32 e, Format from, const Small& to, u32 imm, RandomBits random = {}) {
  const Exact x = Decode(e, from);
  if (IsScale(imm)) return ToScale(x, imm);
  const u64 r =
      Encode(Prepare(x, imm, from.mantissa == 23), to.format, imm & kRoundingMask, true, random);
  return static_cast<u32>(r);
}

// From two f32, or from one pair of halves; the first or upper one goes to the upper part.
template <bool kHalves>
void ToSmallPair(const Lanes& lanes, const Op& op, u32 mask) {
  const Small to = SmallOf(op.imm);
  const int shift = IsScale(op.imm) ? 8 : to.bits;
  const Format from = FormatOf(SourceType(op.imm));
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = kHalves ? a : Source<u32>(lanes, op.s[1]);
  u32* d = Target<u32>(lanes, op.d);
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const u32 high = kHalves ? a[l] >> 16 : a[l], low = kHalves ? b[l] & 0xffff : b[l];
    d[l] = ToSmall(high, from, to, op.imm) << shift | ToSmall(low, from, to, op.imm);
  }
}

// cvt.rs d, {a, b, e, f}, rbits. The random bits are in d2, there is no fifth source: of bytes, the
// upper half is for a and b, the lower for e and f; of nibbles, each has a byte of its own.
void ToSmallFour(const Lanes& lanes, const Op& op, u32 mask) {
  if (op.d == kNoSlot) return;
  const Small to = SmallOf(op.imm);
  const u32* random = Source<u32>(lanes, op.d2);
  u32* d = Target<u32>(lanes, op.d);
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    u32 r = 0;
    for (int i = 0; i < 4; ++i) {
      const u32 half = i < 2 ? random[l] >> 16 : random[l] & 0xffff;
      const u32 own = random[l] >> ((i & 1) != 0 ? 0 : 16);
      const RandomBits bits =
          to.bits == 4 ? RandomBits{(i < 2 ? own >> 8 : own) & 0xff, 8} : RandomBits{half, 16};
      const u32 e = Source<u32>(lanes, op.s[i])[l];
      r = r << to.bits | ToSmall(e, kFormatF32, to, op.imm, bits);
    }
    d[l] = r;
  }
}

void FromSmallPair(const Lanes& lanes, const Op& op, u32 mask) {
  const Small from = SmallOf(op.imm);
  const u32* a = Source<u32>(lanes, op.s[0]);
  u32* d = Target<u32>(lanes, op.d);
  const auto half = [&](u32 e) -> u32 {
    if (IsScale(op.imm)) {
      if (e == 0xff) return 0x7fff;
      return e == 0 ? 0x0040 : e << 7;  // 2^-127 is subnormal in bf16
    }
    return static_cast<u32>(
        Encode(Prepare(Decode(e, from.format), op.imm, false), kFormatF16, kRn, false));
  };
  const int shift = IsScale(op.imm) ? 8 : from.bits;
  const u32 part = (1u << shift) - 1;
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) != 0) d[l] = half((a[l] >> shift) & part) << 16 | half(a[l] & part);
  }
}

// cvt.pack.sat: 16-bit results fill the register; smaller ones push c up by two parts.
void PackSat(const Lanes& lanes, const Op& op, u32 mask) {
  const int bits = static_cast<int>(op.imm & kPackBits);
  const bool is_signed = (op.imm & kPackSigned) != 0;
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = Source<u32>(lanes, op.s[1]);
  const u32* c = bits == 16 ? a : Source<u32>(lanes, op.s[2]);
  u32* d = Target<u32>(lanes, op.d);
  const auto part = [&](u32 e) {
    const s128 v = ClampTo(bits, is_signed, static_cast<s32>(e));
    return static_cast<u32>(v) & ((1u << bits) - 1);
  };
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const u32 rest = bits == 16 ? 0 : c[l] << (2 * bits);
    d[l] = rest | part(a[l]) << bits | part(b[l]);
  }
}

constexpr Entry kEntries[] = {
    {Key(AluOp::kIntToIntSat, Type::kNone), &IntToIntSat},
    {Key(AluOp::kFloatToInt, Type::kNone), &FloatToIntSlow},
    {Key(AluOp::kFloatToFloatSlow, Type::kNone), &ToFloatSlow},
    {Key(AluOp::kFloatPackSlow, Type::kNone), &PackSlow},
    {Key(AluOp::kSmallPack, Type::kNone, Type::kNone, kFromF32), &ToSmallPair<false>},
    {Key(AluOp::kSmallPack, Type::kNone, Type::kNone, kFromHalves), &ToSmallPair<true>},
    {Key(AluOp::kSmallPack4, Type::kNone), &ToSmallFour},
    {Key(AluOp::kSmallUnpack, Type::kNone), &FromSmallPair},
    {Key(AluOp::kPackSat, Type::kNone), &PackSat},
};

}  // namespace

Entries SlowConvertEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::isa_any
