// Selection of handlers that compare, choose and convert (see alu_select.cpp).
#include "node/alu/alu_builder.h"

namespace allranks::node::alu {

namespace {

struct Comparison {
  std::string_view word;
  Compare compare;
  bool swap, invert;
};
// For integers kLess and kEqual suffice; a float's negation must keep NaN on the right side.
constexpr Comparison kIntegerComparisons[] = {
    {"eq", kEqual, false, false}, {"ne", kEqual, false, true}, {"lt", kLess, false, false},
    {"ge", kLess, false, true},   {"gt", kLess, true, false},  {"le", kLess, true, true},
    {"lo", kLess, false, false},  {"hs", kLess, false, true},  {"hi", kLess, true, false},
    {"ls", kLess, true, true}};
constexpr Comparison kFloatComparisons[] = {
    {"eq", kEqual, false, false},       {"neu", kEqual, false, true},
    {"equ", kEqualOrNan, false, false}, {"ne", kEqualOrNan, false, true},
    {"lt", kLess, false, false},        {"geu", kLess, false, true},
    {"gt", kLess, true, false},         {"leu", kLess, true, true},
    {"le", kLessOrEqual, false, false}, {"gtu", kLessOrEqual, false, true},
    {"ge", kLessOrEqual, true, false},  {"ltu", kLessOrEqual, true, true},
    {"num", kOrdered, false, false},    {"nan", kOrdered, false, true}};

const Comparison* FindComparison(std::string_view word, bool is_float) {
  if (is_float) {
    for (const Comparison& c : kFloatComparisons) {
      if (c.word == word) return &c;
    }
    return nullptr;
  }
  for (const Comparison& c : kIntegerComparisons) {
    if (c.word == word) return &c;
  }
  return nullptr;
}

}  // namespace

bool Builder::Compare(bool to_predicate) {
  Type t = words_.type;
  if (words_.types != (to_predicate ? 1 : 2)) return false;
  const bool packed = t == Type::kF16x2 || t == Type::kBF16x2;
  if (packed) t = t == Type::kF16x2 ? Type::kF16 : Type::kBF16;
  const bool is_float = IsFloat(t);
  if (!is_float && !IsInteger(t)) return false;
  const Comparison* comparison = FindComparison(words_.first, is_float);
  if (comparison == nullptr) return false;
  std::uint32_t combine = 0;
  int others = words_.first == "lo" || words_.first == "hi" ? 0 : 1;
  for (const std::string_view m : in_.modifiers) {
    const std::uint32_t word = m == "and"   ? kCombineAnd
                               : m == "or"  ? kCombineOr
                               : m == "xor" ? kCombineXor
                                            : 0;
    if (word == 0) continue;
    combine = word;
    ++others;
  }
  if (!Operands(combine != 0 ? 4 : 3)) return false;
  const bool half = t == Type::kF16 || t == Type::kBF16;
  form_.imm = combine | (comparison->invert ? kInvert : 0) | (words_.ftz ? kCompareFtz : 0) |
              (t == Type::kBF16 ? kCompareBf16 : 0) | (packed ? kComparePair : 0);
  const Type source = packed ? Type::kB32 : t;
  if (to_predicate) {
    if (At(0).kind == Operand::Kind::kPair) {
      Put(Where::kD, 0, Type::kPred, 0);
      Put(Where::kD2, 0, Type::kPred, 1);
    } else {
      Put(Where::kD, 0, Type::kPred);
    }
  } else {
    const Type d = words_.type2;
    switch (d) {
      case Type::kU32:
      case Type::kS32:
        break;
      case Type::kF32:
        form_.imm |= kTrueIsFloat;
        break;
      case Type::kU16:
      case Type::kS16:
        form_.imm |= kTrueIsHalf;
        break;
      case Type::kF16:
        form_.imm |= kTrueIsHalf | kTrueIsFloat;
        break;
      case Type::kBF16:
        form_.imm |= kTrueIsBf16;
        break;
      case Type::kF16x2:
        form_.imm |= kTrueIsHalf | kTrueIsFloat;
        break;
      case Type::kBF16x2:
        form_.imm |= kTrueIsBf16;
        break;
      default:
        return false;
    }
    Put(Where::kD, 0, packed ? Type::kB32 : d);
  }
  Put(comparison->swap ? Where::kS1 : Where::kS0, 1, source);
  Put(comparison->swap ? Where::kS0 : Where::kS1, 2, source);
  if (combine != 0) {
    Put(Where::kS2, 3, Type::kPred);
    if (At(3).negated) form_.flags |= kNegatePredicate;
  }
  if (Bytes(t) == 8) form_.cycles = 2;
  return Done(Key(to_predicate ? AluOp::kSetp : AluOp::kSet, half ? Type::kF16 : Plain(t),
                  Type::kNone, comparison->compare),
              others);
}

bool Builder::Selp() {
  const Type t = words_.type;
  if (words_.types != 1 || !Operands(4)) return false;
  Plain3(t, {t, t, Type::kPred});
  if (At(3).negated) form_.flags |= kNegatePredicate;
  return Done(Key(AluOp::kSelect, Bytes(t) == 8 ? Type::kU64 : Bytes(t) <= 4 ? Type::kU32 : t));
}

bool Builder::Slct() {
  const Type d = words_.type2, c = words_.type;
  if (words_.types != 2 || !Operands(4) || (c != Type::kS32 && c != Type::kF32)) return false;
  Plain3(d, {d, d, c});
  form_.imm = words_.ftz ? 1 : 0;
  return Done(Key(AluOp::kSlct, Bytes(d) == 8 ? Type::kU64 : Bytes(d) <= 4 ? Type::kU32 : d, c));
}

bool Builder::Testp() {
  constexpr std::string_view kTests[] = {"finite",     "infinite", "number",
                                         "notanumber", "normal",   "subnormal"};
  const Type t = words_.type;
  if (words_.types != 1 || !Operands(2)) return false;
  Plain3(Type::kPred, {t});
  for (std::uint32_t test = 0; test < 6; ++test) {
    if (words_.first == kTests[test]) {
      form_.imm = test;
      return Done(Key(AluOp::kTestp, t), 1);
    }
  }
  return false;
}

bool Builder::CvtToInteger(Type to, Type from) {
  if (IsFloat(from)) {
    if (!words_.integral) return false;
    const bool fast = Bytes(to) >= 4 && Bytes(from) >= 4 && ExactWidths(to, from);
    if (!fast) {
      form_.imm = PlaceConvert(to, from);
      return Done(Key(AluOp::kFloatToInt, Type::kNone));
    }
    Plain3(to, {from});
    form_.imm = DirectedImm();
    return Done(Key(AluOp::kFloatToInt, Plain(to), from, words_.rounding));
  }
  if (!IsInteger(from) || words_.integral || words_.rounded) return false;
  // Registers may be wider than the types say. An unsigned result is extended by zeros then, even
  // if its source is extended by its sign to make it. A register of a byte has zeros above it.
  const bool two_steps =
      RegisterBytes(0) > Bytes(to) && Bytes(to) > Bytes(from) && IsSigned(from) && !IsSigned(to);
  if (words_.sat || two_steps || RegisterBytes(0) == 1) {
    form_.imm = PlaceConvert(to, from);
    return Done(Key(AluOp::kIntToIntSat, Type::kNone));
  }
  const int source_bytes = RegisterBytes(1), result_bytes = RegisterBytes(0);
  const bool from_wide = source_bytes == 8 || Bytes(from) == 8;
  int out = Bytes(to) < 2 ? 2 : Bytes(to);
  if (result_bytes > out) out = result_bytes;
  const Type narrow = Bytes(to) <= Bytes(from) ? to : from;
  const Type out_type = out == 8 ? Type::kU64 : out == 4 ? Type::kU32 : Type::kU16;
  Plain3(out_type, {from_wide ? Type::kB64 : from});
  return Done(Key(AluOp::kExtend, out_type, Bytes(narrow) == 8 ? Type::kU64 : Plain(narrow),
                  from_wide ? kFromWide : 0));
}

bool Builder::CvtToFloat(Type to, Type from) {
  const bool exact = ExactWidths(to, from);
  if (IsInteger(from)) {
    if (words_.integral) return false;
    if (exact && words_.rounding == kRn && !words_.sat && (to == Type::kF32 || to == Type::kF64)) {
      Plain3(to, {from});
      return Done(Key(AluOp::kIntToFloat, to, Plain(from)));
    }
    form_.imm = PlaceConvert(to, Plain(from));
    return Done(Key(AluOp::kFloatToFloatSlow, Type::kNone));
  }
  if (!IsFloat(from) || (words_.integral && to != from)) return false;
  if (words_.integral && exact && Bytes(to) >= 4) {
    Plain3(to, {from});
    form_.imm = DirectedImm();
    return Done(Key(AluOp::kFloatToIntegral, to, from, words_.rounding));
  }
  const bool plain =
      exact && words_.rounding == kRn && !words_.relu && !words_.satfinite && !words_.integral;
  const std::uint32_t variant = (words_.ftz ? kFtz : 0) | (words_.sat ? kSat : 0);
  if (plain && to == from && to != Type::kF32 && variant == 0) {
    Plain3(to, {from});
    return Done(Key(AluOp::kMov, Unsigned(to)));
  }
  const std::uint32_t key = Key(AluOp::kFloatToFloat, to, from, variant);
  if (plain && FindHandler(key) != nullptr) {
    Plain3(to, {from});
    return Done(key);
  }
  form_.imm = PlaceConvert(to, from);
  return Done(Key(AluOp::kFloatToFloatSlow, Type::kNone));
}

// Two f32 to a pair of f16 or bf16, with a register of random bits if rounded by them.
bool Builder::CvtToHalves(Type to) {
  const bool random = words_.rounding == kRs;
  if (words_.type != Type::kF32 || !Operands(random ? 4 : 3) || words_.sat || words_.ftz) {
    return false;
  }
  if (random) {
    Plain3(Type::kB32, {Type::kF32, Type::kF32, Type::kB32});
  } else {
    Plain3(Type::kB32, {Type::kF32, Type::kF32});
  }
  if (words_.rounding == kRn && !words_.relu && !words_.satfinite) {
    return Done(Key(AluOp::kFloatPack, to, Type::kF32));
  }
  form_.imm = DirectedImm() | (words_.relu ? kImmRelu : 0) |
              (words_.satfinite ? kImmSatfinite : 0) |
              static_cast<std::uint32_t>(to) << kImmResultShift;
  return Done(Key(AluOp::kFloatPackSlow, Type::kNone));
}

namespace {

constexpr std::string_view kSmallNames[] = {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0"};

// "e4m3x2": which format, and how many.
bool FindSmall(std::string_view word, std::uint32_t* format, int* count) {
  for (std::uint32_t i = 0; i < 6; ++i) {
    const std::string_view name = kSmallNames[i];
    if (word.size() != name.size() + 2 || word.substr(0, name.size()) != name) continue;
    const std::string_view tail = word.substr(name.size());
    *format = i;
    *count = tail == "x2" ? 2 : tail == "x4" ? 4 : 0;
    return *count != 0;
  }
  return false;
}

}  // namespace

bool Builder::CvtToSmall(std::string_view to, Type from) {
  std::uint32_t format = 0;
  int count = 0;
  if (!FindSmall(to, &format, &count) || words_.sat || words_.ftz) return false;
  const bool scale = format == kUe8m0;
  const std::uint32_t rounding = words_.rounding;
  if (scale ? (rounding != kRz && rounding != kRp) || words_.relu || count != 2
            : !words_.satfinite || rounding != (count == 4 ? kRs : kRn)) {
    return false;
  }
  form_.imm = DirectedImm() | (words_.relu ? kImmRelu : 0) |
              (words_.satfinite ? kImmSatfinite : 0) | format << kImmResultShift |
              static_cast<std::uint32_t>(from) << kImmSourceShift;
  if (count == 4) {
    if (from != Type::kF32 || !Operands(3) || At(1).kind != Operand::Kind::kVector ||
        At(1).elements.size() != 4) {
      return false;
    }
    Put(Where::kD, 0, format == kE2m1 ? Type::kB16 : Type::kB32);
    for (int i = 0; i < 4; ++i) {
      Put(static_cast<Where>(static_cast<int>(Where::kS0) + i), 1, Type::kF32, i);
    }
    form_.flags |= kSourceInD2;
    Put(Where::kD2, 2, Type::kB32);
    return Done(Key(AluOp::kSmallPack4, Type::kNone));
  }
  const Type result = format == kE2m1 ? Type::kB8 : Type::kB16;
  const std::uint32_t fast = Key(AluOp::kSmallPack, Type::kB16, from, format);
  if (from == Type::kF32 && Operands(3)) {
    Plain3(result, {Type::kF32, Type::kF32});
    if (FindHandler(fast) != nullptr) return Done(fast);
    return Done(Key(AluOp::kSmallPack, Type::kNone, Type::kNone, kFromF32));
  }
  const bool halves = (from == Type::kF16x2 && !scale) || from == Type::kBF16x2;
  if (!halves || !Operands(2)) return false;
  Plain3(result, {Type::kB32});
  if (FindHandler(fast) != nullptr) return Done(fast);
  return Done(Key(AluOp::kSmallPack, Type::kNone, Type::kNone, kFromHalves));
}

bool Builder::CvtFromSmall(Type to, std::string_view from) {
  std::uint32_t format = 0;
  int count = 0;
  if (!FindSmall(from, &format, &count) || count != 2 || !Operands(2)) return false;
  const bool scale = format == kUe8m0;
  if (words_.rounding != kRn || !words_.rounded || words_.sat || words_.ftz || words_.satfinite ||
      (scale && words_.relu) || to != (scale ? Type::kBF16x2 : Type::kF16x2)) {
    return false;
  }
  Plain3(Type::kB32, {format == kE2m1 ? Type::kB8 : Type::kB16});
  form_.imm = (words_.relu ? kImmRelu : 0) | format << kImmResultShift;
  const std::uint32_t fast = Key(AluOp::kSmallUnpack, Type::kF16x2, Type::kB16, format);
  return Done(FindHandler(fast) != nullptr ? fast : Key(AluOp::kSmallUnpack, Type::kNone));
}

// cvt.pack.sat.TO.s32 d, a, b for 16 bits and cvt.pack.sat.TO.s32.b32 d, a, b, c for fewer.
bool Builder::CvtPack() {
  if (in_.modifiers.size() < 4 || in_.modifiers[1] != "sat" || in_.modifiers[3] != "s32") {
    return false;
  }
  const std::string_view to = in_.modifiers[2];
  const std::string_view width = to.empty() ? to : to.substr(1);
  const std::uint32_t bits = width == "16"  ? 16
                             : width == "8" ? 8
                             : width == "4" ? 4
                             : width == "2" ? 2
                                            : 0;
  if (bits == 0 || (to[0] != 'u' && to[0] != 's')) return false;
  const bool third = bits != 16;
  if (!Operands(third ? 4 : 3) || in_.modifiers.size() != (third ? 5u : 4u) ||
      (third && in_.modifiers[4] != "b32")) {
    return false;
  }
  if (third) {
    Plain3(Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
  } else {
    Plain3(Type::kB32, {Type::kB32, Type::kB32});
  }
  form_.imm = bits | (to[0] == 's' ? kPackSigned : 0);
  return Done(Key(AluOp::kPackSat, Type::kNone), 1);
}

bool Builder::Cvt() {
  form_.cycles = 2;
  if (words_.first == "pack") return CvtPack();
  if (words_.types != 2 || words_.others != 0 || in_.modifiers.size() < 2) return false;
  const Type to = words_.type2, from = words_.type;
  const std::size_t last = in_.modifiers.size() - 1;
  if (to == Type::kOther) return CvtToSmall(in_.modifiers[last - 1], from);
  if (from == Type::kOther) return CvtFromSmall(to, in_.modifiers[last]);
  if (to == Type::kF16x2 || to == Type::kBF16x2) return CvtToHalves(to);
  if (!Operands(2) || words_.rounding == kRs) return false;
  if (IsInteger(to)) return CvtToInteger(to, from);
  if (to == Type::kTF32) {
    if (from != Type::kF32) return false;
    form_.imm = PlaceConvert(Type::kTF32, Type::kF32);
    return Done(Key(AluOp::kFloatToFloatSlow, Type::kNone));
  }
  return IsFloat(to) && CvtToFloat(to, from);
}

}  // namespace allranks::node::alu
