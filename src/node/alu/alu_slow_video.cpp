// Video instructions: arithmetic on bytes and halves chosen from registers, with a second operation
// or a merge. Hardware since sm_50 emulates most of them, so nobody counts on their speed; one lane
// at a time, everything about an instruction read from Op::imm.
#define ALLRANKS_ISA isa_any
#include "node/alu/alu_lanes.h"

namespace allranks::node::alu::isa_any {
namespace {

s128 Clamp(s128 v, int bits, bool is_signed) {
  const s128 high = (s128{1} << (is_signed ? bits - 1 : bits)) - 1;
  const s128 low = is_signed ? -(s128{1} << (bits - 1)) : 0;
  return v > high ? high : v < low ? low : v;
}
s64 Extend(u32 v, int bits, bool is_signed) {
  const u32 low = bits == 32 ? v : v & ((1u << bits) - 1);
  const bool minus = is_signed && (low >> (bits - 1)) != 0;
  return static_cast<s64>(low) - (minus ? s64{1} << bits : 0);
}

// Position and width of what a selector names.
struct Part {
  int shift, bits;
};
Part PartOf(u32 select) {
  if (select == 0) return {0, 32};
  if (select < 5) return {8 * static_cast<int>(select - 1), 8};
  return {16 * static_cast<int>(select - 5), 16};
}

s64 First(u32 what, s64 a, s64 b) {
  switch (what) {
    case kVadd:
      return a + b;
    case kVsub:
      return a - b;
    case kVabsdiff:
      return a < b ? b - a : a - b;
    case kVmin:
      return a < b ? a : b;
    case kVmax:
      return a > b ? a : b;
    case kVavrg:  // rounded towards plus infinity where it is not negative
      return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
    case kVsetEq:
      return a == b ? 1 : 0;
    case kVsetNe:
      return a != b ? 1 : 0;
    case kVsetLt:
      return a < b ? 1 : 0;
    case kVsetLe:
      return a <= b ? 1 : 0;
    case kVsetGt:
      return a > b ? 1 : 0;
    default:
      return a >= b ? 1 : 0;
  }
}

// The product is exact; -a or -b is a complement and a one, -c likewise, .po a one.
u32 MultiplyAdd(u32 imm, s64 a, s64 b, u32 c) {
  const bool negate = (imm & VideoImm::kNegateProduct) != 0;
  const bool negate_c = (imm & VideoImm::kNegateC) != 0;
  const bool is_signed =
      (imm & (VideoImm::kSignedA | VideoImm::kSignedB)) != 0 || negate || negate_c;
  s128 product = static_cast<s128>(a) * b;
  const u32 third = negate_c ? ~c : c;
  if (negate) product = ~product;
  const bool one = negate || negate_c || (imm & VideoImm::kPlusOne) != 0;
  const s128 sum = product + Extend(third, 32, is_signed) + (one ? 1 : 0);
  const s128 scaled = sum >> ((imm >> VideoImm::kScale) & 15);
  return static_cast<u32>((imm & VideoImm::kSat) != 0 ? Clamp(scaled, 32, is_signed) : scaled);
}

u32 Second(u32 imm, s128 v, u32 c) {
  const bool is_signed = (imm & VideoImm::kSignedD) != 0;
  const s64 x = Extend(static_cast<u32>(v), 32, is_signed), y = Extend(c, 32, is_signed);
  switch ((imm >> VideoImm::kSecond) & 3) {
    case kSecondAdd:
      return static_cast<u32>(x + y);
    case kSecondMin:
      return static_cast<u32>(x < y ? x : y);
    case kSecondMax:
      return static_cast<u32>(x > y ? x : y);
    default:
      return static_cast<u32>(v);
  }
}

void VideoLanes(const Lanes& lanes, const Op& op, u32 mask, u32 what) {
  const u32 imm = op.imm;
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = Source<u32>(lanes, op.s[1]);
  const u32* c = Source<u32>(lanes, op.s[2] == kNoSlot ? op.s[0] : op.s[2]);
  u32* d = Target<u32>(lanes, op.d);
  const Part of_a = PartOf((imm >> VideoImm::kSelectA) & 7);
  const Part of_b = PartOf((imm >> VideoImm::kSelectB) & 7);
  const u32 select_d = (imm >> VideoImm::kSelectD) & 7;
  const Part of_d = PartOf(select_d);
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const s64 x = Extend(a[l] >> of_a.shift, of_a.bits, (imm & VideoImm::kSignedA) != 0);
    const s64 y = Extend(b[l] >> of_b.shift, of_b.bits, (imm & VideoImm::kSignedB) != 0);
    if (what == kVmad) {
      d[l] = MultiplyAdd(imm, x, y, c[l]);
      continue;
    }
    s128 v = 0;
    if (what == kVshl || what == kVshr) {
      const s64 count = (imm & VideoImm::kWrap) != 0 ? y & 31 : y > 32 ? 32 : y;
      v = what == kVshl ? static_cast<s128>(x) << count : s128{x >> count};
    } else {
      v = First(what, x, y);
    }
    if ((imm & VideoImm::kSat) != 0) {
      v = Clamp(v, of_d.bits, (imm & VideoImm::kSignedD) != 0);
    }
    if (select_d == 0) {
      d[l] = Second(imm, v, c[l]);
    } else {
      const u32 field = ((1u << of_d.bits) - 1) << of_d.shift;
      d[l] = (c[l] & ~field) | (static_cast<u32>(v) << of_d.shift & field);
    }
  }
}

// Parts of {b, a}, chosen for each of the two operands.
template <int kParts>
void SimdLanes(const Lanes& lanes, const Op& op, u32 mask, u32 what) {
  constexpr int kPartBits = 32 / kParts;
  constexpr u32 kPartMask = (1u << kPartBits) - 1;
  const u32 imm = op.imm;
  const u32 second = imm >> SimdImm::kSecond;
  const u32* a = Source<u32>(lanes, op.s[0]);
  const u32* b = Source<u32>(lanes, op.s[1]);
  const u32* c = Source<u32>(lanes, op.s[2]);
  u32* d = Target<u32>(lanes, op.d);
  for (int l = 0; l < kLanes; ++l) {
    if ((mask & kBit[l]) == 0) continue;
    const u64 parts = u64{b[l]} << 32 | a[l];
    const auto part = [&](int selectors, int i, int sign) {
      const u32 index = (imm >> (selectors + 3 * i)) & 7;
      const u32 v = static_cast<u32>(parts >> (kPartBits * index));
      return Extend(v, kPartBits, ((imm >> sign) & 1) != 0);
    };
    u32 sum = c[l], merged = 0;
    for (int i = 0; i < kParts; ++i) {
      s128 v = First(what, part(SimdImm::kSelectA, i, SimdImm::kSignedA),
                     part(SimdImm::kSelectB, i, SimdImm::kSignedB));
      if (second == kMergeSatUnsigned || second == kMergeSatSigned) {
        v = Clamp(v, kPartBits, second == kMergeSatSigned);
      }
      const bool chosen = ((imm >> (SimdImm::kMask + i)) & 1) != 0;
      if (chosen) sum += static_cast<u32>(v);
      const u32 stays = (c[l] >> (kPartBits * i)) & kPartMask;
      merged |= (chosen ? static_cast<u32>(v) & kPartMask : stays) << (kPartBits * i);
    }
    d[l] = second == kAccumulate ? sum : merged;
  }
}

template <u32 kWhat>
void Video(const Lanes& lanes, const Op& op, u32 mask) {
  VideoLanes(lanes, op, mask, kWhat);
}
template <u32 kWhat>
void Video2(const Lanes& lanes, const Op& op, u32 mask) {
  SimdLanes<2>(lanes, op, mask, kWhat);
}
template <u32 kWhat>
void Video4(const Lanes& lanes, const Op& op, u32 mask) {
  SimdLanes<4>(lanes, op, mask, kWhat);
}

#define ALL(w)                                                          \
  {Key(AluOp::kVideo, Type::kNone, Type::kNone, w), &Video<w>},         \
      {Key(AluOp::kVideo2, Type::kNone, Type::kNone, w), &Video2<w>}, { \
    Key(AluOp::kVideo4, Type::kNone, Type::kNone, w), &Video4<w>        \
  }
#define SCALAR(w) {Key(AluOp::kVideo, Type::kNone, Type::kNone, w), &Video<w>}

constexpr Entry kEntries[] = {
    ALL(kVadd),   ALL(kVsub),    ALL(kVabsdiff), ALL(kVmin),    ALL(kVmax),
    ALL(kVavrg),  SCALAR(kVshl), SCALAR(kVshr),  SCALAR(kVmad), ALL(kVsetEq),
    ALL(kVsetNe), ALL(kVsetLt),  ALL(kVsetLe),   ALL(kVsetGt),  ALL(kVsetGe),
};

}  // namespace

Entries VideoEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::isa_any
