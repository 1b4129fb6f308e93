// Comparisons: setp, set and testp. Five comparisons are enough (alu_table.h): the selection swaps
// operands and negates the result for the others.
#include "node/alu/alu_float.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

template <u32 kCompare, class V>
inline bool Holds(V a, V b) {
  if constexpr (kCompare == kEqual) return a == b;
  if constexpr (kCompare == kEqualOrNan) return !(a < b) && !(a > b);
  if constexpr (kCompare == kLess) return a < b;
  if constexpr (kCompare == kLessOrEqual) return a <= b;
  if constexpr (kCompare == kOrdered) return a == a && b == b;  // NOLINT: not of NaN
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

// Halves are compared as integers that order as the numbers do, with one zero. d and d2 get the
// lower and the upper half's result, or of single halves the result and its negation.
template <u32 kCompare>
void SetpHalves(const Lanes& lanes, const Op& op, u32 mask) {
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = Source<u32>(lanes, op.s[1]);
  const u32 infinity = (op.imm & kCompareBf16) != 0 ? 0x7f80 : 0x7c00;
  // Everything below this exponent is zero: with .ftz subnormals are.
  const u32 exponents = (op.imm & kCompareFtz) != 0 ? 0x7c00 : 0x7fff;
  const auto order = [exponents](u32 h) {
    const s32 magnitude = static_cast<s32>((h & exponents) == 0 ? 0 : h & 0x7fff);
    return (h & 0x8000) != 0 ? -magnitude : magnitude;
  };
  const auto holds = [&](u32 x, u32 y) {
    const bool nan = (x & 0x7fff) > infinity || (y & 0x7fff) > infinity;
    if constexpr (kCompare == kOrdered) return !nan;
    if constexpr (kCompare == kEqualOrNan) return nan || order(x) == order(y);
    return !nan && Holds<kCompare>(order(x), order(y));
  };
  u32 low = 0, high = 0;
  for (int l = 0; l < kLanes; ++l) low |= holds(a[l] & 0xffff, b[l] & 0xffff) ? kBit[l] : 0;
  for (int l = 0; l < kLanes; ++l) high |= holds(a[l] >> 16, b[l] >> 16) ? kBit[l] : 0;
  const u32 invert = (op.imm & kInvert) != 0 ? ~0u : 0;
  low ^= invert;
  high = (op.imm & kComparePair) != 0 ? high ^ invert : ~low;
  const u32 how = op.imm & kCombineMask;
  const u32 c = how != 0 ? LoadPredicate(lanes, op, op.s[2]) : 0;
  StorePredicate(lanes, op.d, Combine(how, low, c), mask);
  StorePredicate(lanes, op.d2, Combine(how, high, c), mask);
}

inline u32 TrueValue(u32 imm) {
  if ((imm & kTrueIsBf16) != 0) return 0x3f80;
  if ((imm & (kTrueIsHalf | kComparePair)) != 0) return (imm & kTrueIsFloat) != 0 ? 0x3c00 : 0xffff;
  return (imm & kTrueIsFloat) != 0 ? 0x3f800000 : ~0u;
}

// set is setp into two predicates of its own, and values made of them: rare enough for that.
[[gnu::noinline]] void SetFrom(AluFn setp, const Lanes& lanes, const Op& op, u32 mask) {
  u32 bits[2] = {0, 0};
  Op compare = op;
  compare.d = 0;
  compare.d2 = 1;
  compare.imm &= ~kCombineMask;
  setp(Lanes{lanes.registers, lanes.constants, bits}, compare, kAllLanes);
  const bool pair = (op.imm & kComparePair) != 0;
  const u32 how = op.imm & kCombineMask;
  const u32 c = how != 0 ? LoadPredicate(lanes, op, op.s[2]) : 0;
  const u32 low = Combine(how, bits[0], c), high = pair ? Combine(how, bits[1], c) : 0;
  u32* d = Target<u32>(lanes, op.d);
  const u32 one = TrueValue(op.imm), upper = pair ? one << 16 : 0;
  ALLRANKS_LANES {
    const u32 r = Choose(low, l, one, 0u) | Choose(high, l, upper, 0u);
    d[l] = Choose(mask, l, r, d[l]);
  }
}
template <AluFn kSetp>
void Set(const Lanes& lanes, const Op& op, u32 mask) {
  SetFrom(kSetp, lanes, op, mask);
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

#define ONE(T, compare)                                                        \
  {Key(AluOp::kSetp, Type::k##T, Type::kNone, compare), &Setp<T, compare>}, {  \
    Key(AluOp::kSet, Type::k##T, Type::kNone, compare), &Set<Setp<T, compare>> \
  }
#define INTEGER(T) ONE(T, kEqual), ONE(T, kLess)
#define FLOAT(T) \
  ONE(T, kEqual), ONE(T, kEqualOrNan), ONE(T, kLess), ONE(T, kLessOrEqual), ONE(T, kOrdered)
#define HALF(compare)                                                             \
  {Key(AluOp::kSetp, Type::kF16, Type::kNone, compare), &SetpHalves<compare>}, {  \
    Key(AluOp::kSet, Type::kF16, Type::kNone, compare), &Set<SetpHalves<compare>> \
  }

constexpr Entry kEntries[] = {
    INTEGER(U16),
    INTEGER(S16),
    INTEGER(U32),
    INTEGER(S32),
    INTEGER(U64),
    INTEGER(S64),
    FLOAT(F32),
    FLOAT(F64),
    HALF(kEqual),
    HALF(kEqualOrNan),
    HALF(kLess),
    HALF(kLessOrEqual),
    HALF(kOrdered),
    {Key(AluOp::kTestp, Type::kF32), &Testp<u32, 0x7f800000u, 0x00800000u>},
    {Key(AluOp::kTestp, Type::kF64), &Testp<u64, 0x7ff0000000000000u, 0x0010000000000000u>},
};

}  // namespace

Entries CompareEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
