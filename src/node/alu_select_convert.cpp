// Selection of handlers that compare, choose and convert (see alu_select.cpp).
#include "node/alu_builder.h"

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
  for (const std::string_view m : in_.modifiers) {
    if (m == "and") combine = kCombineAnd;
    if (m == "or") combine = kCombineOr;
    if (m == "xor") combine = kCombineXor;
  }
  if (!Operands(combine != 0 ? 4 : 3)) return false;
  form_.imm = combine | (comparison->invert ? kInvert : 0) | (words_.ftz ? kCompareFtz : 0);
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
  What what = to_predicate ? What::kSetp : What::kSet;
  if (packed) what = to_predicate ? What::kSetpPacked : What::kSetPacked;
  return Done(Key(what, Plain(t), Type::kNone, comparison->compare));
}

bool Builder::Selp() {
  const Type t = words_.type;
  if (words_.types != 1 || !Operands(4)) return false;
  Plain3(t, {t, t, Type::kPred});
  if (At(3).negated) form_.flags |= kNegatePredicate;
  return Done(Key(What::kSelect, Bytes(t) == 8 ? Type::kU64 : Bytes(t) <= 4 ? Type::kU32 : t));
}

bool Builder::Slct() {
  const Type d = words_.type2, c = words_.type;
  if (words_.types != 2 || !Operands(4) || (c != Type::kS32 && c != Type::kF32)) return false;
  Plain3(d, {d, d, c});
  form_.imm = words_.ftz ? 1 : 0;
  return Done(Key(What::kSlct, Bytes(d) == 8 ? Type::kU64 : Bytes(d) <= 4 ? Type::kU32 : d, c));
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
      return Done(Key(What::kTestp, t));
    }
  }
  return false;
}

bool Builder::CvtToInteger(Type to, Type from) {
  if (IsFloat(from)) {
    if (!words_.integral) return false;
    Plain3(to, {from});
    form_.imm = DirectedImm();
    return Done(Key(What::kFloatToInt, to, from, words_.rounding));
  }
  if (!IsInteger(from)) return false;
  // Registers may be wider than the types say.
  const int source_bytes = RegisterBytes(1), result_bytes = RegisterBytes(0);
  const bool from_wide = source_bytes == 8 || Bytes(from) == 8;
  if (words_.sat) {
    if (from_wide != (Bytes(from) == 8) ||
        (result_bytes == 8) != (Bytes(to) == 8 && result_bytes != 0)) {
      return false;
    }
    Plain3(to, {from});
    form_.imm = ConvertImm(to, from);
    return Done(Key(What::kIntToIntSat, Type::kNone));
  }
  int out = Bytes(to) < 2 ? 2 : Bytes(to);
  if (result_bytes > out) out = result_bytes;
  const Type narrow = Bytes(to) <= Bytes(from) ? to : from;
  const Type out_type = out == 8 ? Type::kU64 : out == 4 ? Type::kU32 : Type::kU16;
  Plain3(out_type, {from_wide ? Type::kB64 : from});
  return Done(Key(What::kExtend, out_type, Bytes(narrow) == 8 ? Type::kU64 : Plain(narrow),
                  from_wide ? kFromWide : 0));
}

bool Builder::CvtToFloat(Type to, Type from) {
  if (IsInteger(from)) {
    Plain3(to, {from});
    if (words_.rounding == kRn && !words_.sat && (to == Type::kF32 || to == Type::kF64)) {
      return Done(Key(What::kIntToFloat, to, Plain(from)));
    }
    form_.imm = ConvertImm(to, Plain(from));
    return Done(Key(What::kFloatToFloatSlow, Type::kNone));
  }
  if (!IsFloat(from)) return false;
  Plain3(to, {from});
  if (words_.integral) {
    form_.imm = DirectedImm();
    return to == from && Done(Key(What::kFloatToIntegral, to, from, words_.rounding));
  }
  const bool plain = words_.rounding == kRn && !words_.relu && !words_.satfinite;
  if (plain && to == Type::kF32 && from == Type::kF32) {
    return Done(
        Key(What::kFloatToFloat, to, from, (words_.ftz ? kFtz : 0) | (words_.sat ? kSat : 0)));
  }
  if (plain && to == from) {
    if (!words_.sat) return Done(Key(What::kMov, Unsigned(to)));
  } else if (plain && !words_.ftz && !words_.sat) {
    if (FindHandler(Key(What::kFloatToFloat, to, from)) != nullptr) {
      return Done(Key(What::kFloatToFloat, to, from));
    }
  }
  form_.imm = ConvertImm(to, from);
  return Done(Key(What::kFloatToFloatSlow, Type::kNone));
}

// cvt with packed or 8-bit float results and sources.
bool Builder::CvtPacked(Type to) {
  const bool e4m3 = in_.Has("e4m3x2"), e5m2 = in_.Has("e5m2x2");
  const Type from = words_.type;
  if (e4m3 || e5m2) {
    const std::uint32_t variant = e4m3 ? 0 : 1;
    if (e4m3 && e5m2) return false;
    if (from == Type::kOther) {  // f16x2 from a pair of bytes
      if (to != Type::kF16x2 || !Operands(2)) return false;
      Plain3(Type::kB32, {Type::kB16});
      form_.imm = ConvertImm(Type::kF16x2, Type::kNone);
      return Done(Key(What::kFp8Unpack, Type::kNone, Type::kNone, variant));
    }
    if (to != Type::kOther) return false;
    form_.imm = ConvertImm(Type::kNone, from);
    if (from == Type::kF32 && Operands(3)) {
      Plain3(Type::kB16, {Type::kF32, Type::kF32});
    } else if ((from == Type::kF16x2 || from == Type::kBF16x2) && Operands(2)) {
      Plain3(Type::kB16, {Type::kB32});
    } else {
      return false;
    }
    return Done(Key(What::kFp8Pack, Type::kNone, Type::kNone, variant));
  }
  if ((to != Type::kF16x2 && to != Type::kBF16x2) || from != Type::kF32 || !Operands(3)) {
    return false;
  }
  Plain3(Type::kB32, {Type::kF32, Type::kF32});
  if (words_.rounding == kRn && !words_.relu && !words_.satfinite) {
    return Done(Key(What::kFloatPack, to, Type::kF32));
  }
  form_.imm = ConvertImm(to, Type::kF32);
  return Done(Key(What::kFloatPackSlow, Type::kNone));
}

bool Builder::Cvt() {
  form_.cycles = 2;
  if (in_.Has("pack")) {
    const Type to = words_.types == 3 ? words_.type3 : words_.type2;
    if (!words_.sat || !(Operands(3) || Operands(4))) return false;
    // cvt.pack.sat.TO.FROM d, a, b and cvt.pack.sat.TO.FROM.b32 d, a, b, c
    const bool four = Operands(4);
    if (words_.types != (four ? 3 : 2) || Bytes(to) != (four ? 1 : 2) || !IsInteger(to) ||
        (four ? words_.type2 : words_.type) != Type::kS32) {
      return false;
    }
    if (four) {
      Plain3(Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
    } else {
      Plain3(Type::kB32, {Type::kB32, Type::kB32});
    }
    form_.imm = static_cast<std::uint32_t>(to) << kImmResultShift;
    return Done(Key(What::kPackSat, Type::kNone));
  }
  if (words_.types != 2 || words_.others != 0) return false;
  const Type to = words_.type2, from = words_.type;
  if (IsInteger(to) && Operands(2)) return CvtToInteger(to, from);
  if (to == Type::kTF32) {
    if (from != Type::kF32 || !Operands(2)) return false;
    Plain3(Type::kB32, {Type::kF32});
    form_.imm = ConvertImm(Type::kTF32, Type::kF32);
    return Done(Key(What::kFloatToFloatSlow, Type::kNone));
  }
  if (IsFloat(to) && Operands(2)) return CvtToFloat(to, from);
  return CvtPacked(to);
}

}  // namespace allranks::node::alu
