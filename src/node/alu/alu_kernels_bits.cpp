// Bitwise instructions: logic, shifts, fields, permutation, counting.
#include "node/alu/alu_lanes.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

template <class T>
constexpr u32 kWidth = 8 * sizeof(T);

struct And {
  template <class T>
  static T Do(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T Do(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T Do(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  static T Do(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  static T Do(T a) {
    return a == 0 ? 1 : 0;
  }
};

// A count beyond the width shifts everything out.
struct Shl {
  template <class T>
  static T Do(T a, u32 count) {
    const T r = static_cast<T>(a << (count & (kWidth<T> - 1)));
    return count < kWidth<T> ? r : T{0};
  }
};
struct Shr {
  template <class T>
  static T Do(T a, u32 count) {
    if constexpr (static_cast<T>(-1) < 0) {
      return static_cast<T>(a >> (count < kWidth<T> ? count : kWidth<T> - 1));
    } else {
      const T r = static_cast<T>(a >> (count & (kWidth<T> - 1)));
      return count < kWidth<T> ? r : T{0};
    }
  }
};

template <bool kWrap>
struct ShfL {
  static u32 Do(u32 low, u32 high, u32 count) {
    const u32 n = kWrap ? count & 31 : (count < 32 ? count : 32);
    return static_cast<u32>(((u64{high} << 32 | low) << n) >> 32);
  }
};
template <bool kWrap>
struct ShfR {
  static u32 Do(u32 low, u32 high, u32 count) {
    const u32 n = kWrap ? count & 31 : (count < 32 ? count : 32);
    return static_cast<u32>((u64{high} << 32 | low) >> n);
  }
};

// Any function of three bits: the table, spread out to words, is selected from by c, then b, then
// a.
struct Lop3 {
  static u32 DoImm(u32 table, u32 a, u32 b, u32 c) {
    const auto bit = [table](int i) { return 0u - ((table >> i) & 1u); };
    const auto select = [](u32 s, u32 one, u32 zero) { return zero ^ (s & (one ^ zero)); };
    const u32 b0 = select(b, select(c, bit(3), bit(2)), select(c, bit(1), bit(0)));
    const u32 b1 = select(b, select(c, bit(7), bit(6)), select(c, bit(5), bit(4)));
    return select(a, b1, b0);
  }
};

// lop3.BoolOp d|p, a, b, c, lut, q: p = (d != 0) BoolOp q. imm: table, 0x100 or, 0x200 and.
void Lop3Predicate(const Lanes& lanes, const Op& op, u32 mask) {
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = Source<u32>(lanes, op.s[1]);
  const u32* c = Source<u32>(lanes, op.s[2]);
  const u32 q = LoadPredicate(lanes, op, op.s[3]);
  u32* d = op.d == kNoSlot ? nullptr : Target<u32>(lanes, op.d);
  u32 bits = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 r = Lop3::DoImm(op.imm & 0xff, a[l], b[l], c[l]);
    bits |= r != 0 ? kBit[l] : 0;
    if (d != nullptr && (mask & kBit[l]) != 0) d[l] = r;
  }
  StorePredicate(lanes, op.d2, (op.imm & 0x100) != 0 ? bits | q : bits & q, mask);
}

enum PrmtMode : u32 { kGeneric, kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };
template <u32 kMode>
struct Prmt {
  // Byte i of the result, in place. (No loop over i: that would keep lanes from being vectorised.)
  template <u32 kByte>
  static u32 Byte(u32 a, u32 b, u32 selector) {
    const u32 s = selector & 3;
    u32 which = 2 * (s & 1) + (kByte & 1);  // rc16
    if (kMode == kGeneric) which = (selector >> (4 * kByte)) & 15;
    if (kMode == kF4e) which = s + kByte;
    if (kMode == kB4e) which = (s - kByte) & 7;
    if (kMode == kRc8) which = s;
    if (kMode == kEcl) which = kByte > s ? kByte : s;
    if (kMode == kEcr) which = kByte < s ? kByte : s;
    const u32 word = (which & 4) != 0 ? b : a;
    u32 byte = (word >> (8 * (which & 3))) & 0xff;
    const u32 sign = (byte & 0x80) != 0 ? 0xff : 0;
    if (kMode == kGeneric) byte = (which & 8) != 0 ? sign : byte;
    return byte << (8 * kByte);
  }
  static u32 Do(u32 a, u32 b, u32 selector) {
    return Byte<0>(a, b, selector) | Byte<1>(a, b, selector) | Byte<2>(a, b, selector) |
           Byte<3>(a, b, selector);
  }
};

template <class T>
T LowOnes(u32 count) {
  return count >= kWidth<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << count) - 1);
}
template <bool kSigned>
struct Bfe {
  template <class T>
  static T Do(T a, u32 b, u32 c) {
    const u32 position = b & 0xff, length = c & 0xff;
    const u32 last = position + length - 1;
    const bool fill =
        kSigned && length != 0 && ((a >> (last < kWidth<T> ? last : kWidth<T> - 1)) & 1) != 0;
    const u32 present = position < kWidth<T> ? kWidth<T> - position : 0;
    const T ones = LowOnes<T>(length < present ? length : present);
    const T field = present != 0 ? (a >> (position & (kWidth<T> - 1))) & ones : 0;
    return fill ? field | static_cast<T>(~ones) : field;
  }
};
struct Bfi {
  template <class T>
  static T Do(T a, T b, u32 c, u32 d) {
    const u32 position = c & 0xff, length = d & 0xff;
    if (position >= kWidth<T>) return b;
    const T field = static_cast<T>(LowOnes<T>(length) << position);
    return (b & ~field) | (static_cast<T>(a << position) & field);
  }
};

struct Brev {
  static u32 Do(u32 a) {
    a = ((a >> 1) & 0x55555555u) | (a & 0x55555555u) << 1;
    a = ((a >> 2) & 0x33333333u) | (a & 0x33333333u) << 2;
    a = ((a >> 4) & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(a);
  }
  static u64 Do(u64 a) {
    return u64{Do(static_cast<u32>(a))} << 32 | Do(static_cast<u32>(a >> 32));
  }
};
struct Popc {
  template <class T>
  static u32 Do(T a) {
    return static_cast<u32>(__builtin_popcountll(a));
  }
};
struct Clz {
  static u32 Do(u32 a) { return a == 0 ? 32 : static_cast<u32>(__builtin_clz(a)); }
  static u32 Do(u64 a) { return a == 0 ? 64 : static_cast<u32>(__builtin_clzll(a)); }
};
// Position of the highest bit that differs from the sign, or all ones; kShift: distance to the top.
template <bool kShift>
struct Bfind {
  static u32 Find(u32 a, bool ones) {
    const u32 v = ones ? ~a : a;
    if (v == 0) return ~0u;
    const u32 shift = static_cast<u32>(__builtin_clz(v));
    return kShift ? shift : 31 - shift;
  }
  static u32 Find(u64 a, bool ones) {
    const u64 v = ones ? ~a : a;
    if (v == 0) return ~0u;
    const u32 shift = static_cast<u32>(__builtin_clzll(v));
    return kShift ? shift : 63 - shift;
  }
  static u32 Do(u32 a) { return Find(a, false); }
  static u32 Do(u64 a) { return Find(a, false); }
  static u32 Do(s32 a) { return Find(static_cast<u32>(a), a < 0); }
  static u32 Do(s64 a) { return Find(static_cast<u64>(a), a < 0); }
};

// The n-th set bit of `a` seen from position `base`: upwards for n > 0, downwards for n < 0.
struct Fns {
  static u32 Do(u32 a, u32 base, s32 n) {
    if (base > 31) return ~0u;
    if (n == 0) return ((a >> base) & 1) != 0 ? base : ~0u;
    s64 left = n > 0 ? s64{n} : -s64{n};
    const s32 step = n > 0 ? 1 : -1;
    for (s32 i = static_cast<s32>(base); i >= 0 && i < 32; i += step) {
      if (((a >> i) & 1) != 0 && --left == 0) return static_cast<u32>(i);
    }
    return ~0u;
  }
};

template <bool kWrap>
struct Bmsk {
  static u32 Do(u32 a, u32 b) {
    if (kWrap) {
      const u32 position = a & 31, length = b & 31;
      return LowOnes<u32>(length) << position;
    }
    return a > 31 ? 0 : LowOnes<u32>(b < 32 ? b : 32) << a;
  }
};
template <bool kWrap, bool kSigned>
struct Szext {
  static u32 Do(u32 a, u32 b) {
    const u32 n = kWrap ? b & 31 : (b < 32 ? b : 32);
    if (n == 0) return 0;
    const u32 low = a & LowOnes<u32>(n);
    return kSigned && ((a >> (n - 1)) & 1) != 0 ? low | ~LowOnes<u32>(n) : low;
  }
};

// Any function of two predicates: bit 2a + b of the table in Op::imm.
void PredicateLogic(const Lanes& lanes, const Op& op, u32 mask) {
  const u32 a = lanes.predicates[op.s[0]], b = lanes.predicates[op.s[1]];
  const auto rows = [&op](u32 row) { return 0u - ((op.imm >> row) & 1u); };
  const u32 r = (~a & ~b & rows(0)) | (~a & b & rows(1)) | (a & ~b & rows(2)) | (a & b & rows(3));
  StorePredicate(lanes, op.d, r, mask);
}

#define LOGIC(what, F)                                   \
  {Key(AluOp::what, Type::kU16), kBinary<F, U16>},       \
      {Key(AluOp::what, Type::kU32), kBinary<F, U32>}, { \
    Key(AluOp::what, Type::kU64), kBinary<F, U64>        \
  }
#define SHIFT(what, F, T) {Key(AluOp::what, Type::k##T), &Map2<F, T, T, U32>}

constexpr Entry kEntries[] = {
    LOGIC(kAnd, And),
    LOGIC(kOr, Or),
    LOGIC(kXor, Xor),
    {Key(AluOp::kNot, Type::kU16), kUnary<Not, U16>},
    {Key(AluOp::kNot, Type::kU32), kUnary<Not, U32>},
    {Key(AluOp::kNot, Type::kU64), kUnary<Not, U64>},
    {Key(AluOp::kPredicateLogic, Type::kPred), &PredicateLogic},
    {Key(AluOp::kCnot, Type::kU16), kUnary<Cnot, U16>},
    {Key(AluOp::kCnot, Type::kU32), kUnary<Cnot, U32>},
    {Key(AluOp::kCnot, Type::kU64), kUnary<Cnot, U64>},
    SHIFT(kShl, Shl, U16),
    SHIFT(kShl, Shl, U32),
    SHIFT(kShl, Shl, U64),
    SHIFT(kShr, Shr, U16),
    SHIFT(kShr, Shr, U32),
    SHIFT(kShr, Shr, U64),
    SHIFT(kShr, Shr, S16),
    SHIFT(kShr, Shr, S32),
    SHIFT(kShr, Shr, S64),
    {Key(AluOp::kShfL, Type::kU32, Type::kNone, 0), kTernary<ShfL<false>, U32>},
    {Key(AluOp::kShfL, Type::kU32, Type::kNone, 1), kTernary<ShfL<true>, U32>},
    {Key(AluOp::kShfR, Type::kU32, Type::kNone, 0), kTernary<ShfR<false>, U32>},
    {Key(AluOp::kShfR, Type::kU32, Type::kNone, 1), kTernary<ShfR<true>, U32>},
    {Key(AluOp::kLop3, Type::kU32), kTernary<Lop3, U32>},
    {Key(AluOp::kLop3, Type::kU32, Type::kPred), &Lop3Predicate},
    {Key(AluOp::kPrmt, Type::kU32, Type::kNone, kGeneric), kTernary<Prmt<kGeneric>, U32>},
    {Key(AluOp::kPrmt, Type::kU32, Type::kNone, kF4e), kTernary<Prmt<kF4e>, U32>},
    {Key(AluOp::kPrmt, Type::kU32, Type::kNone, kB4e), kTernary<Prmt<kB4e>, U32>},
    {Key(AluOp::kPrmt, Type::kU32, Type::kNone, kRc8), kTernary<Prmt<kRc8>, U32>},
    {Key(AluOp::kPrmt, Type::kU32, Type::kNone, kEcl), kTernary<Prmt<kEcl>, U32>},
    {Key(AluOp::kPrmt, Type::kU32, Type::kNone, kEcr), kTernary<Prmt<kEcr>, U32>},
    {Key(AluOp::kPrmt, Type::kU32, Type::kNone, kRc16), kTernary<Prmt<kRc16>, U32>},
    {Key(AluOp::kBfe, Type::kU32), &Map3<Bfe<false>, U32, U32, U32, U32>},
    {Key(AluOp::kBfe, Type::kS32), &Map3<Bfe<true>, U32, U32, U32, U32>},
    {Key(AluOp::kBfe, Type::kU64), &Map3<Bfe<false>, U64, U64, U32, U32>},
    {Key(AluOp::kBfe, Type::kS64), &Map3<Bfe<true>, U64, U64, U32, U32>},
    {Key(AluOp::kBfi, Type::kU32), &Map4<Bfi, U32, U32, U32, U32, U32>},
    {Key(AluOp::kBfi, Type::kU64), &Map4<Bfi, U64, U64, U64, U32, U32>},
    {Key(AluOp::kBrev, Type::kU32), kUnary<Brev, U32>},
    {Key(AluOp::kBrev, Type::kU64), kUnary<Brev, U64>},
    {Key(AluOp::kPopc, Type::kU32), &Map1<Popc, U32, U32>},
    {Key(AluOp::kPopc, Type::kU64), &Map1<Popc, U32, U64>},
    {Key(AluOp::kClz, Type::kU32), &Map1<Clz, U32, U32>},
    {Key(AluOp::kClz, Type::kU64), &Map1<Clz, U32, U64>},
    {Key(AluOp::kBfind, Type::kU32, Type::kNone, 0), &Map1<Bfind<false>, U32, U32>},
    {Key(AluOp::kBfind, Type::kS32, Type::kNone, 0), &Map1<Bfind<false>, U32, S32>},
    {Key(AluOp::kBfind, Type::kU64, Type::kNone, 0), &Map1<Bfind<false>, U32, U64>},
    {Key(AluOp::kBfind, Type::kS64, Type::kNone, 0), &Map1<Bfind<false>, U32, S64>},
    {Key(AluOp::kBfind, Type::kU32, Type::kNone, 1), &Map1<Bfind<true>, U32, U32>},
    {Key(AluOp::kBfind, Type::kS32, Type::kNone, 1), &Map1<Bfind<true>, U32, S32>},
    {Key(AluOp::kBfind, Type::kU64, Type::kNone, 1), &Map1<Bfind<true>, U32, U64>},
    {Key(AluOp::kBfind, Type::kS64, Type::kNone, 1), &Map1<Bfind<true>, U32, S64>},
    {Key(AluOp::kFns, Type::kU32), &Map3<Fns, U32, U32, U32, S32>},
    {Key(AluOp::kBmsk, Type::kU32, Type::kNone, 0), kBinary<Bmsk<false>, U32>},
    {Key(AluOp::kBmsk, Type::kU32, Type::kNone, 1), kBinary<Bmsk<true>, U32>},
    {Key(AluOp::kSzext, Type::kU32, Type::kNone, 0), kBinary<Szext<false, false>, U32>},
    {Key(AluOp::kSzext, Type::kU32, Type::kNone, 1), kBinary<Szext<true, false>, U32>},
    {Key(AluOp::kSzext, Type::kS32, Type::kNone, 0), kBinary<Szext<false, true>, U32>},
    {Key(AluOp::kSzext, Type::kS32, Type::kNone, 1), kBinary<Szext<true, true>, U32>},
};

}  // namespace

Entries BitEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
