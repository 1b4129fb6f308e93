// Integer arithmetic: add to mad, division, extrema, carry chains and dot products.
// Signed arithmetic is done on unsigned values, where it is the same and wraps.
#include "node/alu/alu_lanes.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

template <class T>
struct Limits;
template <>
struct Limits<u16> {
  using Wide = u32;
  using Unsigned = u16;
  static constexpr bool kSigned = false;
};
template <>
struct Limits<s16> {
  using Wide = s32;
  using Unsigned = u16;
  static constexpr bool kSigned = true;
};
template <>
struct Limits<u32> {
  using Wide = u64;
  using Unsigned = u32;
  static constexpr bool kSigned = false;
};
template <>
struct Limits<s32> {
  using Wide = s64;
  using Unsigned = u32;
  static constexpr bool kSigned = true;
};
template <>
struct Limits<u64> {
  using Wide = u128;
  using Unsigned = u64;
  static constexpr bool kSigned = false;
};
template <>
struct Limits<s64> {
  using Wide = s128;
  using Unsigned = u64;
  static constexpr bool kSigned = true;
};

template <class T>
using Wide = typename Limits<T>::Wide;
template <class T>
using Unsigned = typename Limits<T>::Unsigned;
template <class T>
constexpr int kBits = 8 * sizeof(T);

s32 ClampS32(s64 v) {
  v = v > 0x7fffffff ? 0x7fffffff : v;
  return static_cast<s32>(v < -0x7fffffff - 1 ? -s64{0x7fffffff} - 1 : v);
}

struct Add {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Sub {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>(a - b);
  }
};
struct AddSat {
  static s32 Do(s32 a, s32 b) { return ClampS32(s64{a} + b); }
};
struct SubSat {
  static s32 Do(s32 a, s32 b) { return ClampS32(s64{a} - b); }
};
struct MulLo {
  // u16 promotes to int, whose product may overflow: widen first.
  static u16 Do(u16 a, u16 b) { return static_cast<u16>(u32{a} * b); }
  static u32 Do(u32 a, u32 b) { return a * b; }
  static u64 Do(u64 a, u64 b) { return a * b; }
};
struct MulHi {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>((static_cast<Wide<T>>(a) * b) >> kBits<T>);
  }
};
struct MulWide {
  template <class T>
  static Wide<T> Do(T a, T b) {
    return static_cast<Wide<T>>(a) * b;
  }
};
struct MadLo {
  template <class T>
  static T Do(T a, T b, T c) {
    return static_cast<T>(MulLo::Do(a, b) + c);
  }
};
struct MadHi {
  template <class T>
  static T Do(T a, T b, T c) {
    return static_cast<T>(static_cast<Unsigned<T>>(MulHi::Do(a, b)) + static_cast<Unsigned<T>>(c));
  }
};
struct MadHiSat {
  static s32 Do(s32 a, s32 b, s32 c) { return ClampS32(s64{MulHi::Do(a, b)} + c); }
};
struct MadWide {
  template <class T>
  static Wide<T> Do(T a, T b, Wide<T> c) {
    using W = Unsigned<Wide<T>>;
    return static_cast<Wide<T>>(static_cast<W>(static_cast<Wide<T>>(a) * b) + static_cast<W>(c));
  }
};

u32 Low24(u32 a) { return a & 0xffffff; }
s32 Low24(s32 a) { return static_cast<s32>(static_cast<u32>(a) << 8) >> 8; }
struct Mul24Lo {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(Low24(a)) * Low24(b));
  }
};
struct Mul24Hi {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>((static_cast<Wide<T>>(Low24(a)) * Low24(b)) >> 16);
  }
};
struct Mad24Lo {
  template <class T>
  static T Do(T a, T b, T c) {
    return static_cast<T>(static_cast<u32>(Mul24Lo::Do(a, b)) + static_cast<u32>(c));
  }
};
struct Mad24Hi {
  template <class T>
  static T Do(T a, T b, T c) {
    return static_cast<T>(static_cast<u32>(Mul24Hi::Do(a, b)) + static_cast<u32>(c));
  }
};
struct Mad24HiSat {
  static s32 Do(s32 a, s32 b, s32 c) { return ClampS32(s64{Mul24Hi::Do(a, b)} + c); }
};

// Division by zero gives all ones, quotient and remainder alike, as the code sequences that the
// hardware's assembler emits do. The one signed overflow wraps.
struct Div {
  template <class T>
  static T Do(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (Limits<T>::kSigned) {
      if (b == -1) return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
    }
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  static T Do(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (Limits<T>::kSigned) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  static T Do(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static T Do(T a, T b) {
    return a > b ? a : b;
  }
};
struct MinRelu {
  template <class T>
  static T Do(T a, T b) {
    return Max::Do(Min::Do(a, b), T{0});
  }
};
struct MaxRelu {
  template <class T>
  static T Do(T a, T b) {
    return Max::Do(Max::Do(a, b), T{0});
  }
};
struct Neg {
  template <class T>
  static T Do(T a) {
    return static_cast<T>(T{0} - a);
  }
};
struct Abs {
  template <class T>
  static T Do(T a) {
    return a < 0 ? static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a)) : a;
  }
};
struct Sad {
  template <class T>
  static T Do(T a, T b, T c) {
    using U = Unsigned<T>;
    const U x = static_cast<U>(a), y = static_cast<U>(b);
    return static_cast<T>(static_cast<U>(c) + static_cast<U>(a < b ? y - x : x - y));
  }
};

// Two 16-bit values in one register, each on its own.
template <class F, class T>
struct Packed16 {
  static u32 Do(u32 a, u32 b) {
    const u32 low = static_cast<u16>(F::Do(static_cast<T>(a), static_cast<T>(b)));
    const u32 high = static_cast<u16>(F::Do(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return low | high << 16;
  }
};

// Carry chains. The carry flag is a predicate of its own. Subtraction is a + ~b + carry: the flag
// is clear after a borrow. nvcc's division of 128 bits needs it so (it reads the flag of a sub.cc
// with an addc); chains of one kind cannot tell.
struct AddCarry {
  static constexpr u32 kWithout = 0;
  template <class T>
  static T Do(T a, T b, T, T carry, bool* out) {
    const T sum = a + b, r = sum + carry;
    *out = sum < a || r < sum;
    return r;
  }
};
struct SubCarry {
  static constexpr u32 kWithout = ~u32{0};
  template <class T>
  static T Do(T a, T b, T, T carry, bool* out) {
    return AddCarry::Do<T>(a, static_cast<T>(~b), T{0}, carry, out);
  }
};
template <class F, class S>
struct MadCarry {
  static constexpr u32 kWithout = 0;
  template <class T>
  static T Do(T a, T b, T c, T carry, bool* out) {
    const T product = static_cast<T>(F::Do(static_cast<S>(a), static_cast<S>(b)));
    return AddCarry::Do(product, c, T{0}, carry, out);
  }
};

template <class F, class T>
void Chain(const Lanes& lanes, const Op& op, u32 mask) {
  using E = typename T::Element;
  const E* a = Source<E>(lanes, op.s[0]);
  const E* b = Source<E>(lanes, op.s[1]);
  // Only mad has a third source.
  const E* c = Source<E>(lanes, op.s[2] == kNoSlot ? op.s[0] : op.s[2]);
  E* d = op.d == kNoSlot ? nullptr : Target<E>(lanes, op.d);
  const u32 in = (op.imm & kImmCarryIn) != 0 ? lanes.predicates[op.s[3]] : F::kWithout;
  u32 out = 0;
  for (int l = 0; l < kLanes; ++l) {
    bool carry = false;
    const E r = F::template Do<E>(a[l], b[l], c[l], (in >> l) & 1, &carry);
    if (d != nullptr && ((mask >> l) & 1) != 0) d[l] = r;
    out |= static_cast<u32>(carry) << l;
  }
  if ((op.imm & kImmCarryOut) != 0) StorePredicate(lanes, op.d2, out, mask);
}

template <class A, class B>
struct Dp4a {
  static u32 Do(u32 a, u32 b, u32 c) {
    u32 sum = c;
    for (int i = 0; i < 32; i += 8) {
      sum += static_cast<u32>(static_cast<s32>(static_cast<A>(a >> i)) *
                              static_cast<s32>(static_cast<B>(b >> i)));
    }
    return sum;
  }
};
template <class A, class B, int kFirst>
struct Dp2a {
  static u32 Do(u32 a, u32 b, u32 c) {
    u32 sum = c;
    for (int i = 0; i < 2; ++i) {
      sum += static_cast<u32>(static_cast<s32>(static_cast<A>(a >> (16 * i))) *
                              static_cast<s32>(static_cast<B>(b >> (8 * (kFirst + i)))));
    }
    return sum;
  }
};

#define ALL_WIDTHS(what, F)                              \
  {Key(AluOp::what, Type::kU16), kBinary<F, U16>},       \
      {Key(AluOp::what, Type::kU32), kBinary<F, U32>}, { \
    Key(AluOp::what, Type::kU64), kBinary<F, U64>        \
  }
#define ALL_TYPES(what, F)                                              \
  ALL_WIDTHS(what, F), {Key(AluOp::what, Type::kS16), kBinary<F, S16>}, \
      {Key(AluOp::what, Type::kS32), kBinary<F, S32>}, {                \
    Key(AluOp::what, Type::kS64), kBinary<F, S64>                       \
  }
#define ALL_TYPES3(what, F)                               \
  {Key(AluOp::what, Type::kU16), kTernary<F, U16>},       \
      {Key(AluOp::what, Type::kU32), kTernary<F, U32>},   \
      {Key(AluOp::what, Type::kU64), kTernary<F, U64>},   \
      {Key(AluOp::what, Type::kS16), kTernary<F, S16>},   \
      {Key(AluOp::what, Type::kS32), kTernary<F, S32>}, { \
    Key(AluOp::what, Type::kS64), kTernary<F, S64>        \
  }
#define PACKED(what, F)                                               \
  {Key(AluOp::what, Type::kU16x2), kBinary<Packed16<F, u16>, U32>}, { \
    Key(AluOp::what, Type::kS16x2), kBinary<Packed16<F, s16>, U32>    \
  }

constexpr Entry kEntries[] = {
    ALL_WIDTHS(kAdd, Add),
    ALL_WIDTHS(kSub, Sub),
    ALL_WIDTHS(kMulLo, MulLo),
    {Key(AluOp::kAddSat, Type::kS32), kBinary<AddSat, S32>},
    {Key(AluOp::kSubSat, Type::kS32), kBinary<SubSat, S32>},
    ALL_TYPES(kMulHi, MulHi),
    {Key(AluOp::kMulWide, Type::kU16), &Map2<MulWide, U32, U16, U16>},
    {Key(AluOp::kMulWide, Type::kS16), &Map2<MulWide, S32, S16, S16>},
    {Key(AluOp::kMulWide, Type::kU32), &Map2<MulWide, U64, U32, U32>},
    {Key(AluOp::kMulWide, Type::kS32), &Map2<MulWide, S64, S32, S32>},
    {Key(AluOp::kMadLo, Type::kU16), kTernary<MadLo, U16>},
    {Key(AluOp::kMadLo, Type::kU32), kTernary<MadLo, U32>},
    {Key(AluOp::kMadLo, Type::kU64), kTernary<MadLo, U64>},
    ALL_TYPES3(kMadHi, MadHi),
    {Key(AluOp::kMadHiSat, Type::kS32), kTernary<MadHiSat, S32>},
    {Key(AluOp::kMadWide, Type::kU16), &Map3<MadWide, U32, U16, U16, U32>},
    {Key(AluOp::kMadWide, Type::kS16), &Map3<MadWide, S32, S16, S16, S32>},
    {Key(AluOp::kMadWide, Type::kU32), &Map3<MadWide, U64, U32, U32, U64>},
    {Key(AluOp::kMadWide, Type::kS32), &Map3<MadWide, S64, S32, S32, S64>},
    {Key(AluOp::kMul24Lo, Type::kU32), kBinary<Mul24Lo, U32>},
    {Key(AluOp::kMul24Lo, Type::kS32), kBinary<Mul24Lo, S32>},
    {Key(AluOp::kMul24Hi, Type::kU32), kBinary<Mul24Hi, U32>},
    {Key(AluOp::kMul24Hi, Type::kS32), kBinary<Mul24Hi, S32>},
    {Key(AluOp::kMad24Lo, Type::kU32), kTernary<Mad24Lo, U32>},
    {Key(AluOp::kMad24Lo, Type::kS32), kTernary<Mad24Lo, S32>},
    {Key(AluOp::kMad24Hi, Type::kU32), kTernary<Mad24Hi, U32>},
    {Key(AluOp::kMad24Hi, Type::kS32), kTernary<Mad24Hi, S32>},
    {Key(AluOp::kMad24HiSat, Type::kS32), kTernary<Mad24HiSat, S32>},
    ALL_TYPES(kDiv, Div),
    ALL_TYPES(kRem, Rem),
    ALL_TYPES(kMin, Min),
    ALL_TYPES(kMax, Max),
    {Key(AluOp::kMinRelu, Type::kS32), kBinary<MinRelu, S32>},
    {Key(AluOp::kMaxRelu, Type::kS32), kBinary<MaxRelu, S32>},
    PACKED(kAdd, Add),
    PACKED(kMin, Min),
    PACKED(kMax, Max),
    {Key(AluOp::kMinRelu, Type::kS16x2), kBinary<Packed16<MinRelu, s16>, U32>},
    {Key(AluOp::kMaxRelu, Type::kS16x2), kBinary<Packed16<MaxRelu, s16>, U32>},
    {Key(AluOp::kNeg, Type::kU16), kUnary<Neg, U16>},
    {Key(AluOp::kNeg, Type::kU32), kUnary<Neg, U32>},
    {Key(AluOp::kNeg, Type::kU64), kUnary<Neg, U64>},
    {Key(AluOp::kAbs, Type::kS16), kUnary<Abs, S16>},
    {Key(AluOp::kAbs, Type::kS32), kUnary<Abs, S32>},
    {Key(AluOp::kAbs, Type::kS64), kUnary<Abs, S64>},
    ALL_TYPES3(kSad, Sad),
    {Key(AluOp::kAddCarry, Type::kU32), &Chain<AddCarry, U32>},
    {Key(AluOp::kAddCarry, Type::kU64), &Chain<AddCarry, U64>},
    {Key(AluOp::kSubCarry, Type::kU32), &Chain<SubCarry, U32>},
    {Key(AluOp::kSubCarry, Type::kU64), &Chain<SubCarry, U64>},
    {Key(AluOp::kMadLoCarry, Type::kU32), &Chain<MadCarry<MulLo, u32>, U32>},
    {Key(AluOp::kMadLoCarry, Type::kU64), &Chain<MadCarry<MulLo, u64>, U64>},
    {Key(AluOp::kMadHiCarry, Type::kU32), &Chain<MadCarry<MulHi, u32>, U32>},
    {Key(AluOp::kMadHiCarry, Type::kU64), &Chain<MadCarry<MulHi, u64>, U64>},
    {Key(AluOp::kMadHiCarry, Type::kS32), &Chain<MadCarry<MulHi, s32>, U32>},
    {Key(AluOp::kMadHiCarry, Type::kS64), &Chain<MadCarry<MulHi, s64>, U64>},
    {Key(AluOp::kDp4a, Type::kU32, Type::kU32), kTernary<Dp4a<u8, u8>, U32>},
    {Key(AluOp::kDp4a, Type::kU32, Type::kS32), kTernary<Dp4a<u8, s8>, U32>},
    {Key(AluOp::kDp4a, Type::kS32, Type::kU32), kTernary<Dp4a<s8, u8>, U32>},
    {Key(AluOp::kDp4a, Type::kS32, Type::kS32), kTernary<Dp4a<s8, s8>, U32>},
    {Key(AluOp::kDp2aLo, Type::kU32, Type::kU32), kTernary<Dp2a<u16, u8, 0>, U32>},
    {Key(AluOp::kDp2aLo, Type::kU32, Type::kS32), kTernary<Dp2a<u16, s8, 0>, U32>},
    {Key(AluOp::kDp2aLo, Type::kS32, Type::kU32), kTernary<Dp2a<s16, u8, 0>, U32>},
    {Key(AluOp::kDp2aLo, Type::kS32, Type::kS32), kTernary<Dp2a<s16, s8, 0>, U32>},
    {Key(AluOp::kDp2aHi, Type::kU32, Type::kU32), kTernary<Dp2a<u16, u8, 2>, U32>},
    {Key(AluOp::kDp2aHi, Type::kU32, Type::kS32), kTernary<Dp2a<u16, s8, 2>, U32>},
    {Key(AluOp::kDp2aHi, Type::kS32, Type::kU32), kTernary<Dp2a<s16, u8, 2>, U32>},
    {Key(AluOp::kDp2aHi, Type::kS32, Type::kS32), kTernary<Dp2a<s16, s8, 2>, U32>},
};

}  // namespace

Entries IntegerEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
