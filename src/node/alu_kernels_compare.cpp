// Comparisons: setp, set and testp. Five comparisons are enough (alu_table.h): the selection swaps
// operands and negates the result for the others.
#include "node/alu_float.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

template <u32 kCompare, class V>
inline bool Holds(V a, V b) {
  if constexpr (kCompare == kEqual) return a == b;
  if constexpr (kCompare == kEqualOrNan) return !(a < b) && !(a > b);
  if constexpr (kCompare == kLess) return a < b;
  if constexpr (kCompare == kLessOrEqual) return a <= b;
  if constexpr (kCompare == kOrdered) return a == a && b == b;
}

inline float FlushOperand(float v) { return Flush(v); }
template <class V>
inline V FlushOperand(V v) {
  return v;
}

template <class T, u32 kCompare>
inline u32 CompareLanes(const Lanes& lanes, const Op& op) {
  using E = typename T::Element;
  const E* a = Source<E>(lanes, op.s[0]);
  const E* b = Source<E>(lanes, op.s[1]);
  u32 bits = 0;
  if (sizeof(typename T::Value) == 4 && (op.imm & kCompareFtz) != 0) {
    for (int l = 0; l < kLanes; ++l) {
      bits |=
          Holds<kCompare>(FlushOperand(T::Load(a[l])), FlushOperand(T::Load(b[l]))) ? kBit[l] : 0;
    }
  } else {
    for (int l = 0; l < kLanes; ++l) {
      bits |= Holds<kCompare>(T::Load(a[l]), T::Load(b[l])) ? kBit[l] : 0;
    }
  }
  return (op.imm & kInvert) != 0 ? ~bits : bits;
}

inline u32 Combine(u32 how, u32 bits, u32 c) {
  switch (how & kCombineMask) {
    case kCombineAnd:
      return bits & c;
    case kCombineOr:
      return bits | c;
    case kCombineXor:
      return bits ^ c;
    default:
      return bits;
  }
}

template <class T, u32 kCompare>
void Setp(const Lanes& lanes, const Op& op, u32 mask) {
  const u32 bits = CompareLanes<T, kCompare>(lanes, op);
  const u32 how = op.imm & kCombineMask;
  const u32 c = how != 0 ? LoadPredicate(lanes, op, op.s[2]) : 0;
  StorePredicate(lanes, op.d, Combine(how, bits, c), mask);
  StorePredicate(lanes, op.d2, Combine(how, ~bits, c), mask);
}

inline void StoreTruth(const Lanes& lanes, const Op& op, u32 low, u32 one, u32 mask) {
  u32* d = Target<u32>(lanes, op.d);
  ALLRANKS_LANES d[l] = Choose(mask, l, Choose(low, l, one, 0u), d[l]);
}

inline u32 TrueValue(u32 imm) {
  if ((imm & kTrueIsBf16) != 0) return 0x3f80;
  if ((imm & kTrueIsHalf) != 0) return (imm & kTrueIsFloat) != 0 ? 0x3c00 : 0xffff;
  return (imm & kTrueIsFloat) != 0 ? 0x3f800000 : ~0u;
}

template <class T, u32 kCompare>
void Set(const Lanes& lanes, const Op& op, u32 mask) {
  u32 bits = CompareLanes<T, kCompare>(lanes, op);
  const u32 how = op.imm & kCombineMask;
  if (how != 0) bits = Combine(how, bits, LoadPredicate(lanes, op, op.s[2]));
  StoreTruth(lanes, op, bits, TrueValue(op.imm), mask);
}

// Packed pairs: setp writes one predicate per half, set one half of the result per half.
template <class T, u32 kCompare>
inline void ComparePairs(const Lanes& lanes, const Op& op, u32* low, u32* high) {
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = Source<u32>(lanes, op.s[1]);
  u32 l0 = 0, h0 = 0;
  const bool ftz = (op.imm & kCompareFtz) != 0;
  const auto flush = [ftz](float v) {
    return ftz && __builtin_fabsf(v) < 0x1p-14f ? __builtin_copysignf(0.0f, v) : v;
  };
  for (int l = 0; l < kLanes; ++l) {
    l0 |=
        Holds<kCompare>(flush(T::Load(a[l] & 0xffff)), flush(T::Load(b[l] & 0xffff))) ? kBit[l] : 0;
    h0 |= Holds<kCompare>(flush(T::Load(a[l] >> 16)), flush(T::Load(b[l] >> 16))) ? kBit[l] : 0;
  }
  const u32 invert = (op.imm & kInvert) != 0 ? ~0u : 0;
  *low = l0 ^ invert;
  *high = h0 ^ invert;
}

template <class T, u32 kCompare>
void SetpPairs(const Lanes& lanes, const Op& op, u32 mask) {
  u32 low = 0, high = 0;
  ComparePairs<T, kCompare>(lanes, op, &low, &high);
  const u32 how = op.imm & kCombineMask;
  const u32 c = how != 0 ? LoadPredicate(lanes, op, op.s[2]) : 0;
  StorePredicate(lanes, op.d, Combine(how, low, c), mask);
  StorePredicate(lanes, op.d2, Combine(how, high, c), mask);
}

template <class T, u32 kCompare>
void SetPairs(const Lanes& lanes, const Op& op, u32 mask) {
  u32 low = 0, high = 0;
  ComparePairs<T, kCompare>(lanes, op, &low, &high);
  const u32 how = op.imm & kCombineMask;
  if (how != 0) {
    const u32 c = LoadPredicate(lanes, op, op.s[2]);
    low = Combine(how, low, c);
    high = Combine(how, high, c);
  }
  u32* d = Target<u32>(lanes, op.d);
  const u32 one = TrueValue(op.imm | kTrueIsHalf);
  ALLRANKS_LANES {
    const u32 r = Choose(low, l, one, 0u) | Choose(high, l, one << 16, 0u);
    d[l] = Choose(mask, l, r, d[l]);
  }
}

// A single half: subnormals differ from those of float, so flushing needs its own loop.
template <class T, u32 kCompare>
inline u32 CompareHalves(const Lanes& lanes, const Op& op) {
  u32 low = 0, high = 0;
  ComparePairs<T, kCompare>(lanes, op, &low, &high);
  return low;
}
template <class T, u32 kCompare>
void SetpHalf(const Lanes& lanes, const Op& op, u32 mask) {
  const u32 bits = CompareHalves<T, kCompare>(lanes, op);
  const u32 how = op.imm & kCombineMask;
  const u32 c = how != 0 ? LoadPredicate(lanes, op, op.s[2]) : 0;
  StorePredicate(lanes, op.d, Combine(how, bits, c), mask);
  StorePredicate(lanes, op.d2, Combine(how, ~bits, c), mask);
}
template <class T, u32 kCompare>
void SetHalf(const Lanes& lanes, const Op& op, u32 mask) {
  u32 bits = CompareHalves<T, kCompare>(lanes, op);
  const u32 how = op.imm & kCombineMask;
  if (how != 0) bits = Combine(how, bits, LoadPredicate(lanes, op, op.s[2]));
  StoreTruth(lanes, op, bits, TrueValue(op.imm), mask);
}

// Works on the encoding: magnitude, infinity's encoding and the smallest normal number's.
template <class E, E kInfinityBits, E kNormalBits>
void Testp(const Lanes& lanes, const Op& op, u32 mask) {
  const E* a = Source<E>(lanes, op.s[0]);
  u32 bits = 0;
  for (int l = 0; l < kLanes; ++l) {
    const E magnitude = a[l] & (~E{0} >> 1);
    bool r = false;
    switch (op.imm) {
      case kFinite:
        r = magnitude < kInfinityBits;
        break;
      case kInfinite:
        r = magnitude == kInfinityBits;
        break;
      case kNumber:
        r = magnitude <= kInfinityBits;
        break;
      case kNotANumber:
        r = magnitude > kInfinityBits;
        break;
      case kNormal:
        r = magnitude >= kNormalBits && magnitude < kInfinityBits;
        break;
      default:
        r = magnitude < kNormalBits && magnitude != 0;
        break;
    }
    bits |= r ? kBit[l] : 0;
  }
  StorePredicate(lanes, op.d, bits, mask);
}

#define ONE(T, compare)                                                      \
  {Key(What::kSetp, Type::k##T, Type::kNone, compare), &Setp<T, compare>}, { \
    Key(What::kSet, Type::k##T, Type::kNone, compare), &Set<T, compare>      \
  }
#define INTEGER(T) ONE(T, kEqual), ONE(T, kLess)
#define FLOAT(T) \
  ONE(T, kEqual), ONE(T, kEqualOrNan), ONE(T, kLess), ONE(T, kLessOrEqual), ONE(T, kOrdered)
#define ONE_HALF(T, compare)                                                                \
  {Key(What::kSetp, Type::k##T, Type::kNone, compare), &SetpHalf<T, compare>},              \
      {Key(What::kSet, Type::k##T, Type::kNone, compare), &SetHalf<T, compare>},            \
      {Key(What::kSetpPacked, Type::k##T, Type::kNone, compare), &SetpPairs<T, compare>}, { \
    Key(What::kSetPacked, Type::k##T, Type::kNone, compare), &SetPairs<T, compare>          \
  }
#define HALF(T)                                                                                 \
  ONE_HALF(T, kEqual), ONE_HALF(T, kEqualOrNan), ONE_HALF(T, kLess), ONE_HALF(T, kLessOrEqual), \
      ONE_HALF(T, kOrdered)

constexpr Entry kEntries[] = {
    INTEGER(U16),
    INTEGER(S16),
    INTEGER(U32),
    INTEGER(S32),
    INTEGER(U64),
    INTEGER(S64),
    FLOAT(F32),
    FLOAT(F64),
    HALF(F16),
    HALF(BF16),
    {Key(What::kTestp, Type::kF32), &Testp<u32, 0x7f800000u, 0x00800000u>},
    {Key(What::kTestp, Type::kF64), &Testp<u64, 0x7ff0000000000000u, 0x0010000000000000u>},
};

}  // namespace

Entries CompareEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
