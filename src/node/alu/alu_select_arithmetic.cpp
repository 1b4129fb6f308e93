// Selection of arithmetic handlers: integers, floats, bits (see alu_select.cpp).
#include "node/alu/alu_builder.h"

namespace allranks::node::alu {
namespace {

// CUDA C++ Programming Guide, throughput of native instructions: special functions, popc, clz and
// bfind have 16 results per cycle and SM where f32 has 128.
constexpr std::uint8_t kSpecialCycles = 8;

}  // namespace

bool Builder::FloatBinary(AluOp what, AluOp directed, int sources) {
  const Type t = words_.type;
  if (!Operands(static_cast<std::size_t>(sources) + 1)) return false;
  Put(Where::kD, 0, t);
  for (int i = 0; i < sources; ++i) {
    Put(static_cast<Where>(static_cast<int>(Where::kS0) + i), i + 1, t);
  }
  if (t == Type::kF64) form_.cycles = 2;
  if (words_.rounding != kRn) {
    form_.imm = DirectedImm();
    return Done(Key(directed, t));
  }
  const std::uint32_t variant = (words_.ftz ? kFtz : 0) | (words_.sat ? kSat : 0) |
                                (words_.relu ? kRelu : 0) | (words_.oob ? kOob : 0);
  return Done(Key(what, t, Type::kNone, variant));
}

bool Builder::FloatUnary(AluOp what, AluOp directed) {
  form_.cycles = kSpecialCycles;
  const Type t = words_.type;
  if (!Operands(2) || words_.types != 1) return false;
  // .ftz of f64 is the approximation's only.
  if (t == Type::kF64 && words_.ftz != words_.approx) return false;
  Plain3(t, {t});
  if (words_.rounding != kRn) {
    form_.imm = DirectedImm();
    return Done(Key(directed, t));
  }
  return Done(Key(what, t, Type::kNone, words_.ftz ? kFtz : 0));
}

bool Builder::Special(AluOp what) {
  form_.cycles = kSpecialCycles;
  const Type t = words_.type;
  if (!Operands(2) || words_.types != 1) return false;
  Plain3(t, {t});
  return Done(Key(what, t, Type::kNone, words_.ftz ? kFtz : 0));
}

// add.f32.f16 d, a, c and the like: all but the last source are halves, the rest is f32.
bool Builder::Mixed(AluOp what, int sources) {
  const Type t = words_.type;
  if (words_.type2 != Type::kF32 || !Operands(static_cast<std::size_t>(sources) + 1)) return false;
  if (sources == 2) {
    Plain3(Type::kF32, {t, Type::kF32});
  } else {
    Plain3(Type::kF32, {t, t, Type::kF32});
  }
  form_.imm = DirectedImm();
  return Done(Key(what, Type::kF32, t));
}

bool Builder::Arithmetic(AluOp what) {
  const Type t = words_.type;
  if (words_.cc) return Carry();
  if (words_.types == 2) return Mixed(what == AluOp::kAdd ? AluOp::kAddMixed : AluOp::kSubMixed, 2);
  if (words_.types != 1) return false;
  if (t == Type::kU16x2 || t == Type::kS16x2) {
    if (!Operands(3)) return false;
    Plain3(Type::kB32, {Type::kB32, Type::kB32});
    return Done(Key(what, t));
  }
  if (!IsInteger(t)) {
    return FloatBinary(what, what == AluOp::kAdd ? AluOp::kAddDirected : AluOp::kSubDirected, 2);
  }
  if (!Operands(3)) return false;
  Plain3(t, {t, t});
  if (Bytes(t) == 8) form_.cycles = 2;
  if (words_.sat) {
    return Done(Key(what == AluOp::kAdd ? AluOp::kAddSat : AluOp::kSubSat, t));
  }
  return Done(Key(what, Unsigned(t)));
}

bool Builder::Carry() {
  const bool in_carry = in_.opcode == "addc" || in_.opcode == "subc" || in_.opcode == "madc";
  const bool mad = in_.opcode == "mad" || in_.opcode == "madc";
  const Type t = words_.type;
  if (!IsInteger(t) || words_.types != 1 || !Operands(mad ? 4 : 3)) return false;
  if (mad) {
    Plain3(t, {t, t, t});
  } else {
    Plain3(t, {t, t});
  }
  if (in_carry) form_.flags |= kReadsCarry;
  if (words_.cc) form_.flags |= kWritesCarry;
  form_.imm = (in_carry ? kImmCarryIn : 0) | (words_.cc ? kImmCarryOut : 0);
  form_.cycles = Bytes(t) == 8 ? 2 : 1;
  if (mad) {
    if (words_.hi == words_.lo) return false;
    return Done(words_.hi ? Key(AluOp::kMadHiCarry, Plain(t))
                          : Key(AluOp::kMadLoCarry, Unsigned(t)));
  }
  const bool add = in_.opcode == "add" || in_.opcode == "addc";
  return Done(Key(add ? AluOp::kAddCarry : AluOp::kSubCarry, Unsigned(t)));
}

namespace {

Type WideOf(Type t) {
  switch (t) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS32:
      return Type::kS64;
    default:
      return Type::kNone;
  }
}

}  // namespace

bool Builder::Mul() {
  const Type t = words_.type;
  if (words_.types != 1) return false;
  if (!IsInteger(t)) return FloatBinary(AluOp::kMul, AluOp::kMulDirected, 2);
  if (!Operands(3)) return false;
  form_.cycles = 2;
  if (words_.wide) {
    const Type d = WideOf(t);
    if (d == Type::kNone) return false;
    Plain3(d, {t, t});
    return Done(Key(AluOp::kMulWide, t));
  }
  Plain3(t, {t, t});
  if (words_.hi) return Done(Key(AluOp::kMulHi, t));
  return words_.lo && Done(Key(AluOp::kMulLo, Unsigned(t)));
}

bool Builder::Mad() {
  const Type t = words_.type;
  if (words_.types != 1) return false;
  if (words_.cc || in_.opcode == "madc") return Carry();
  // mad of floats is fma wherever there is hardware for it.
  if (!IsInteger(t)) return FloatBinary(AluOp::kFma, AluOp::kFmaDirected, 3);
  if (!Operands(4)) return false;
  form_.cycles = 2;
  if (words_.wide) {
    const Type d = WideOf(t);
    if (d == Type::kNone) return false;
    Plain3(d, {t, t, d});
    return Done(Key(AluOp::kMadWide, t));
  }
  Plain3(t, {t, t, t});
  if (words_.hi) return Done(Key(words_.sat ? AluOp::kMadHiSat : AluOp::kMadHi, t));
  return words_.lo && Done(Key(AluOp::kMadLo, Unsigned(t)));
}

bool Builder::Mul24(bool add) {
  const Type t = words_.type;
  if (words_.types != 1 || words_.hi == words_.lo || !Operands(add ? 4 : 3)) return false;
  if (add) {
    Plain3(t, {t, t, t});
    if (words_.sat) return words_.hi && Done(Key(AluOp::kMad24HiSat, t));
    return Done(Key(words_.hi ? AluOp::kMad24Hi : AluOp::kMad24Lo, t));
  }
  Plain3(t, {t, t});
  return Done(Key(words_.hi ? AluOp::kMul24Hi : AluOp::kMul24Lo, t));
}

bool Builder::Division(AluOp what) {
  const Type t = words_.type;
  if (words_.types != 1 || !Operands(3)) return false;
  // Real hardware runs some twenty instructions for these.
  if (!IsInteger(t)) {
    if (what == AluOp::kRem) return false;
    const bool ok =
        FloatBinary(words_.approx ? AluOp::kDivApprox : AluOp::kDiv, AluOp::kDivDirected, 2);
    form_.cycles = t == Type::kF64 ? 32 : words_.approx || words_.full ? 8 : 16;
    return ok;
  }
  Plain3(t, {t, t});
  form_.cycles = Bytes(t) == 8 ? 64 : 20;
  return Done(Key(what, t));
}

bool Builder::Extreme(bool maximum) {
  const Type t = words_.type;
  const AluOp what = maximum ? AluOp::kMax : AluOp::kMin;
  if (words_.types != 1) return false;
  const bool three = Operands(4);
  if (!three && !Operands(3)) return false;
  if (t == Type::kU16x2 || t == Type::kS16x2) {
    if (three) return false;
    Plain3(Type::kB32, {Type::kB32, Type::kB32});
    return Done(Key(words_.relu ? (maximum ? AluOp::kMaxRelu : AluOp::kMinRelu) : what, t));
  }
  if (IsInteger(t)) {
    if (three) return false;
    Plain3(t, {t, t});
    if (words_.relu) return Done(Key(maximum ? AluOp::kMaxRelu : AluOp::kMinRelu, t));
    return Done(Key(what, t));
  }
  Put(Where::kD, 0, t);
  for (int i = 0; i < (three ? 3 : 2); ++i) {
    Put(static_cast<Where>(static_cast<int>(Where::kS0) + i), i + 1, t);
  }
  const std::uint32_t variant =
      (words_.ftz ? kFtz : 0) | (words_.nan ? kNaN : 0) | (words_.xorsign ? kXorsign : 0);
  // .abs alone is for three operands, .xorsign.abs for two.
  if (words_.sat || words_.relu || (!three && words_.xorsign != words_.absolute)) return false;
  if (t == Type::kF16 || t == Type::kF16x2 || t == Type::kBF16 || t == Type::kBF16x2) {
    const bool bf16 = t == Type::kBF16 || t == Type::kBF16x2;
    if (three || (bf16 && words_.ftz)) return false;
    form_.imm = variant | (bf16 ? kImmBf16 : 0);
    return Done(Key(what, Type::kF16));
  }
  if (t != Type::kF32 || (!three && !words_.xorsign)) {
    return !three && Done(Key(what, t, Type::kNone, variant));
  }
  if (three && words_.xorsign) return false;
  form_.imm = variant | (three && words_.absolute ? kAbsolute : 0);
  return Done(Key(three ? AluOp::kExtreme3Slow : AluOp::kExtremeSlow, t, Type::kNone,
                  maximum ? kMaximum : 0));
}

bool Builder::AbsNeg(AluOp what) {
  Type t = words_.type;
  if (words_.types != 1 || !Operands(2)) return false;
  Plain3(t, {t});
  if (IsInteger(t)) {
    return IsSigned(t) && Done(Key(what, what == AluOp::kNeg ? Unsigned(t) : t));
  }
  return Done(Key(what, t, Type::kNone, words_.ftz ? kFtz : 0));
}

bool Builder::DotProduct(bool four) {
  if (words_.types != 2 || !Operands(4)) return false;
  Plain3(Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
  if (!four && words_.lo == words_.hi) return false;
  const AluOp what = four ? AluOp::kDp4a : words_.hi ? AluOp::kDp2aHi : AluOp::kDp2aLo;
  return Done(Key(what, words_.type2, words_.type));
}

bool Builder::Logic(AluOp what) {
  const Type t = words_.type;
  const bool unary = what == AluOp::kNot || what == AluOp::kCnot;
  if (words_.types != 1) return false;
  if (t == Type::kPred) return what != AluOp::kCnot && PredicateLogic();
  if (!Operands(unary ? 2 : 3)) return false;
  if (unary) {
    Plain3(t, {t});
  } else {
    Plain3(t, {t, t});
  }
  return IsInteger(t) && Done(Key(what, Unsigned(t)));
}

bool Builder::Shift(AluOp what) {
  const Type t = words_.type;
  if (words_.types != 1 || !IsInteger(t) || !Operands(3)) return false;
  Plain3(t, {t, Type::kU32});
  if (Bytes(t) == 8) form_.cycles = 2;
  return Done(Key(what, what == AluOp::kShl ? Unsigned(t) : Plain(t)));
}

bool Builder::Funnel() {
  if (words_.type != Type::kB32 || !Operands(4)) return false;
  const bool left = words_.first == "l", wrap = in_.Has("wrap");
  if ((!left && words_.first != "r") || (!wrap && !in_.Has("clamp"))) return false;
  Plain3(Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
  return Done(Key(left ? AluOp::kShfL : AluOp::kShfR, Type::kU32, Type::kNone, wrap ? 1 : 0), 2);
}

bool Builder::Lop3() {
  if (words_.type != Type::kB32) return false;
  if (words_.others == 0) {
    if (!Operands(5) || At(4).kind != Operand::Kind::kInt) return false;
    Plain3(Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
    form_.imm = static_cast<std::uint32_t>(At(4).imm & 0xff);
    return Done(Key(AluOp::kLop3, Type::kU32));
  }
  if (!Operands(6) || At(4).kind != Operand::Kind::kInt || At(0).kind != Operand::Kind::kPair ||
      (words_.other != "or" && words_.other != "and")) {
    return false;
  }
  Put(Where::kD, 0, Type::kB32, 0);
  Put(Where::kD2, 0, Type::kPred, 1);
  for (int i = 0; i < 3; ++i) {
    Put(static_cast<Where>(static_cast<int>(Where::kS0) + i), i + 1, Type::kB32);
  }
  Put(Where::kS3, 5, Type::kPred);
  if (At(5).negated) form_.flags |= kNegatePredicate;
  form_.imm = static_cast<std::uint32_t>(At(4).imm & 0xff) | (words_.other == "or" ? 0x100 : 0x200);
  return Done(Key(AluOp::kLop3, Type::kU32, Type::kPred), 1);
}

bool Builder::Prmt() {
  constexpr std::string_view kModes[] = {"", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  if (words_.type != Type::kB32 || !Operands(4)) return false;
  Plain3(Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
  for (std::uint32_t mode = 0; mode < 7; ++mode) {
    if (words_.other == kModes[mode]) {
      return Done(Key(AluOp::kPrmt, Type::kU32, Type::kNone, mode), mode == 0 ? 0 : 1);
    }
  }
  return false;
}

bool Builder::Bits() {
  const Type t = words_.type;
  const std::string_view op = in_.opcode;
  if (words_.types != 1 || !IsInteger(t)) return false;
  const std::uint32_t wrap = words_.other == "wrap" ? 1 : 0;
  if (words_.others > 1 ||
      (words_.others == 1 && wrap == 0 && words_.other != "clamp" && words_.other != "shiftamt")) {
    return false;
  }
  if (op == "bfe" && Operands(4)) {
    Plain3(t, {t, Type::kU32, Type::kU32});
    return Done(Key(AluOp::kBfe, t));
  }
  if (op == "bfi" && Operands(5)) {
    Plain3(t, {t, t, Type::kU32, Type::kU32});
    return Done(Key(AluOp::kBfi, Unsigned(t)));
  }
  if (op == "fns" && Operands(4)) {
    Plain3(t, {t, Type::kU32, Type::kS32});
    return Done(Key(AluOp::kFns, Unsigned(t)));
  }
  if (op == "bmsk" && Operands(3)) {
    Plain3(t, {t, t});
    return Done(Key(AluOp::kBmsk, Unsigned(t), Type::kNone, wrap), 1);
  }
  if (op == "szext" && Operands(3)) {
    Plain3(t, {t, Type::kU32});
    return Done(Key(AluOp::kSzext, t, Type::kNone, wrap), 1);
  }
  if (op == "sad" && Operands(4)) {
    Plain3(t, {t, t, t});
    return Done(Key(AluOp::kSad, t));
  }
  if (!Operands(2)) return false;
  if (op == "brev") {
    Plain3(t, {t});
    return Done(Key(AluOp::kBrev, Unsigned(t)));
  }
  Plain3(Type::kU32, {t});
  form_.cycles = kSpecialCycles;
  if (op == "popc") return Done(Key(AluOp::kPopc, Unsigned(t)));
  if (op == "clz") return Done(Key(AluOp::kClz, Unsigned(t)));
  if (op == "bfind") {
    const bool shift = words_.other == "shiftamt";
    return Done(Key(AluOp::kBfind, t, Type::kNone, shift ? 1 : 0), shift ? 1 : 0);
  }
  return false;
}

}  // namespace allranks::node::alu
