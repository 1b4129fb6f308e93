// Moving values: mov with packing and unpacking, selection by predicate, address windows.
#include "node/alu/alu_lanes.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

struct Same {
  template <class T>
  static T Do(T a) {
    return a;
  }
};

// A b128 register is two arrays of u64[32], the low halves first.
void Mov128(const Lanes& lanes, const Op& op, u32 mask) {
  const u64* a = Source<u64>(lanes, op.s[0]);
  u64* d = Target<u64>(lanes, op.d);
  for (int half = 0; half < 2; ++half) {
    ALLRANKS_LANES d[half * kLanes + l] =
        Choose(mask, l, a[half * kLanes + l], d[half * kLanes + l]);
  }
}

// kPart: bits of each part.
template <int kPart>
struct Pack2 {
  template <class T>
  static u32 Do(T a, T b)
    requires(kPart < 32)
  {
    constexpr u32 kMask = (1u << (kPart % 32)) - 1;
    return (a & kMask) | (b & kMask) << (kPart % 32);
  }
};
struct PackWords {
  static u64 Do(u32 a, u32 b) { return u64{b} << 32 | a; }
};
struct Pack4x16 {
  static u64 Do(u32 a, u32 b, u32 c, u32 d) {
    return u64{a & 0xffff} | u64{b & 0xffff} << 16 | u64{c & 0xffff} << 32 | u64{d} << 48;
  }
};
struct Pack4x8 {
  static u32 Do(u32 a, u32 b, u32 c, u32 d) {
    return (a & 0xff) | (b & 0xff) << 8 | (c & 0xff) << 16 | d << 24;
  }
};
// b128 from two b64 (or four b32, in pairs).
template <class Part>
void PackTo128(const Lanes& lanes, const Op& op, u32 mask) {
  u64* d = Target<u64>(lanes, op.d);
  const auto* a = Source<Part>(lanes, op.s[0]);
  const auto* b = Source<Part>(lanes, op.s[1]);
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    if constexpr (sizeof(Part) == 8) {
      d[l] = a[l];
      d[kLanes + l] = b[l];
    } else {
      const auto* c = Source<Part>(lanes, op.s[2]);
      const auto* e = Source<Part>(lanes, op.s[3]);
      d[l] = PackWords::Do(a[l], b[l]);
      d[kLanes + l] = PackWords::Do(c[l], e[l]);
    }
  }
}

// One part of a wider value: bits [kShift, kShift + kBits). A destination may be absent (`_`).
template <class E, int kBits, int kShift>
void StorePart(const Lanes& lanes, Slot slot, const E* a, u32 mask) {
  if (slot == kNoSlot) return;
  u32* d = Target<u32>(lanes, slot);
  constexpr u32 kMask = kBits == 32 ? ~0u : (1u << (kBits % 32)) - 1;
  ALLRANKS_LANES d[l] = Choose(mask, l, static_cast<u32>(a[l] >> kShift) & kMask, d[l]);
}
// The source may share its slot with a destination of the same width: read it first.
template <class E, int kBits, int kParts>
void Unpack(const Lanes& lanes, const Op& op, u32 mask) {
  alignas(64) E a[kLanes];
  const E* s = Source<E>(lanes, op.s[0]);
  ALLRANKS_LANES a[l] = s[l];
  StorePart<E, kBits, 0>(lanes, op.d, a, mask);
  StorePart<E, kBits, kBits>(lanes, op.d2, a, mask);
  if constexpr (kParts == 4) {
    StorePart<E, kBits, 2 * kBits>(lanes, op.s[2], a, mask);
    StorePart<E, kBits, 3 * kBits>(lanes, op.s[3], a, mask);
  }
}
void Unpack128(const Lanes& lanes, const Op& op, u32 mask) {
  const u64* a = Source<u64>(lanes, op.s[0]);
  u64* low = op.d == kNoSlot ? nullptr : Target<u64>(lanes, op.d);
  u64* high = op.d2 == kNoSlot ? nullptr : Target<u64>(lanes, op.d2);
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    if (low != nullptr) low[l] = a[l];
    if (high != nullptr) high[l] = a[kLanes + l];
  }
}
void Unpack128To32(const Lanes& lanes, const Op& op, u32 mask) {
  const u64* a = Source<u64>(lanes, op.s[0]);
  StorePart<u64, 32, 0>(lanes, op.d, a, mask);
  StorePart<u64, 32, 32>(lanes, op.d2, a, mask);
  StorePart<u64, 32, 0>(lanes, op.s[2], a + kLanes, mask);
  StorePart<u64, 32, 32>(lanes, op.s[3], a + kLanes, mask);
}

template <class E>
void Select(const Lanes& lanes, const Op& op, u32 mask) {
  const E* a = Source<E>(lanes, op.s[0]);
  const E* b = Source<E>(lanes, op.s[1]);
  E* d = Target<E>(lanes, op.d);
  const u32 p = LoadPredicate(lanes, op, op.s[2]);
  if (mask == kAllLanes) {
    ALLRANKS_LANES d[l] = Choose(p, l, a[l], b[l]);
  } else {
    ALLRANKS_LANES d[l] = Choose(mask, l, Choose(p, l, a[l], b[l]), d[l]);
  }
}

struct SlctInt {
  template <class T>
  static T Do(T a, T b, s32 c) {
    return c >= 0 ? a : b;
  }
};
struct SlctFloat {
  template <class T>
  static T DoImm(u32 ftz, T a, T b, float c) {
    const float tiny = ftz != 0 ? 0x1p-126f : 0.0f;
    return c >= 0 || -c < tiny ? a : b;
  }
};

void PredConstant(const Lanes& lanes, const Op& op, u32 mask) {
  StorePredicate(lanes, op.d, op.imm != 0 ? kAllLanes : 0, mask);
}

struct AddBase {
  static u64 DoImm(u32 imm, u64 a) {
    const u64 base = u64{imm & 0xff} << kWindowShift;
    return (imm & kSubtractBase) != 0 ? a - base : a + base;
  }
};

void IsSpace(const Lanes& lanes, const Op& op, u32 mask) {
  const u64* a = Source<u64>(lanes, op.s[0]);
  u32 bits = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u64 window = a[l] >> kWindowShift;
    const bool global = window < kSharedWindow || window > kParamWindow;
    bits |= (op.imm == 0 ? global : window == op.imm) ? kBit[l] : 0;
  }
  StorePredicate(lanes, op.d, bits, mask);
}

constexpr Entry kEntries[] = {
    {Key(AluOp::kMov, Type::kU16), kUnary<Same, U16>},
    {Key(AluOp::kMov, Type::kU32), kUnary<Same, U32>},
    {Key(AluOp::kMov, Type::kU64), kUnary<Same, U64>},
    {Key(AluOp::kMov, Type::kB128), &Mov128},
    {Key(AluOp::kPack2, Type::kU16), kBinary<Pack2<8>, U32>},
    {Key(AluOp::kPack2, Type::kU32), kBinary<Pack2<16>, U32>},
    {Key(AluOp::kPack2, Type::kU64), &Map2<PackWords, U64, U32, U32>},
    {Key(AluOp::kPack2, Type::kB128), &PackTo128<u64>},
    {Key(AluOp::kPack4, Type::kU32), &Map4<Pack4x8, U32, U32, U32, U32, U32>},
    {Key(AluOp::kPack4, Type::kU64), &Map4<Pack4x16, U64, U32, U32, U32, U32>},
    {Key(AluOp::kPack4, Type::kB128), &PackTo128<u32>},
    {Key(AluOp::kUnpack2, Type::kU16), &Unpack<u32, 8, 2>},
    {Key(AluOp::kUnpack2, Type::kU32), &Unpack<u32, 16, 2>},
    {Key(AluOp::kUnpack2, Type::kU64), &Unpack<u64, 32, 2>},
    {Key(AluOp::kUnpack2, Type::kB128), &Unpack128},
    {Key(AluOp::kUnpack4, Type::kU32), &Unpack<u32, 8, 4>},
    {Key(AluOp::kUnpack4, Type::kU64), &Unpack<u64, 16, 4>},
    {Key(AluOp::kUnpack4, Type::kB128), &Unpack128To32},
    {Key(AluOp::kSelect, Type::kU32), &Select<u32>},
    {Key(AluOp::kSelect, Type::kU64), &Select<u64>},
    {Key(AluOp::kSlct, Type::kU32, Type::kS32), &Map3<SlctInt, U32, U32, U32, S32>},
    {Key(AluOp::kSlct, Type::kU64, Type::kS32), &Map3<SlctInt, U64, U64, U64, S32>},
    {Key(AluOp::kSlct, Type::kU32, Type::kF32), &Map3<SlctFloat, U32, U32, U32, F32>},
    {Key(AluOp::kSlct, Type::kU64, Type::kF32), &Map3<SlctFloat, U64, U64, U64, F32>},
    {Key(AluOp::kPredConstant, Type::kPred), &PredConstant},
    {Key(AluOp::kAddBase, Type::kU64), &Map1<AddBase, U64, U64>},
    {Key(AluOp::kIsSpace, Type::kPred), &IsSpace},
};

}  // namespace

Entries MoveEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
