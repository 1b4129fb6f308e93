// From an instruction's words to its handler: reads modifiers and operand shapes, makes the key of
// alu_table.h and says where the decoder has to put the operands. Compiled once; no arithmetic
// here. The PTX is untrusted: whatever does not fit a known form exactly is refused. This file: the
// words, the check of operands, moves, and which family an opcode belongs to.
#include "node/alu/alu_builder.h"

namespace allranks::node {
namespace alu {

Words ReadWords(const Instruction& in) {
  Words w;
  if (!in.modifiers.empty()) w.first = in.modifiers[0];
  for (const std::string_view m : in.modifiers) {
    const Type type = ptx::TypeFromWord(m);
    if (type != Type::kNone) {
      w.type3 = w.type2;
      w.type2 = w.type;
      w.type = type;
      ++w.types;
    } else if (m == "ftz") {
      w.ftz = true;
    } else if (m == "sat") {
      w.sat = true;
    } else if (m == "NaN") {
      w.nan = true;
    } else if (m == "xorsign") {
      w.xorsign = true;
    } else if (m == "abs") {
      w.absolute = true;
    } else if (m == "oob") {
      w.oob = true;
    } else if (m == "approx") {
      w.approx = true;
    } else if (m == "full") {
      w.full = true;
    } else if (m == "relu") {
      w.relu = true;
    } else if (m == "satfinite") {
      w.satfinite = true;
    } else if (m == "wide") {
      w.wide = true;
    } else if (m == "hi") {
      w.hi = true;
    } else if (m == "lo") {
      w.lo = true;
    } else if (m == "cc") {
      w.cc = true;
    } else if (m == "rn" || m == "rz" || m == "rm" || m == "rp" || m == "rna" || m == "rs") {
      w.rounded = true;
      w.rounding = m == "rn"   ? kRn
                   : m == "rz" ? kRz
                   : m == "rm" ? kRm
                   : m == "rp" ? kRp
                   : m == "rs" ? kRs
                               : kRna;
    } else if (m == "rni" || m == "rzi" || m == "rmi" || m == "rpi") {
      w.integral = true;
      w.rounding = m == "rni" ? kRn : m == "rzi" ? kRz : m == "rmi" ? kRm : kRp;
    } else {
      w.other = m;
      ++w.others;
    }
  }
  return w;
}

// Every operand must be of a kind the place can hold, and a register of exactly its width: the
// handler trusts both.
bool Builder::Fits(const AluForm::Place& place) const {
  if (place.operand >= in_.operands.size()) return false;
  const Operand* o = &in_.operands[place.operand];
  if (place.element != 0xff) {
    if (place.element >= o->elements.size()) return false;
    o = &o->elements[place.element];
  }
  const bool second = place.where == Where::kD2 && (form_.flags & kSourceInD2) == 0;
  const bool destination = place.where == Where::kD || second ||
                           ((form_.flags & kExtraDestinations) != 0 && place.operand == 0);
  switch (o->kind) {
    case Operand::Kind::kReg:
      break;
    case Operand::Kind::kSink:
      return destination;
    case Operand::Kind::kInt:
    case Operand::Kind::kF32:
    case Operand::Kind::kF64:
    // The decoder turns symbols into literals and special registers into slots of their own.
    case Operand::Kind::kSymbol:
    case Operand::Kind::kSpecial:
      return !destination && !place.predicate;
    default:
      return false;
  }
  if (!selectors_ && (!o->name.empty() || (o->negated && (destination || !place.predicate)))) {
    return false;
  }
  if (registers_ == nullptr) return true;
  if (o->reg < 0 || static_cast<std::size_t>(o->reg) >= registers_->size()) return false;
  const Type type = (*registers_)[static_cast<std::size_t>(o->reg)].type;
  if (place.predicate) return type == Type::kPred;
  const int bytes = Bytes(type);
  return bytes != 0 && (bytes < 4 ? 4 : bytes) == place.bytes;
}

bool Builder::Fits() const {
  for (const AluForm::Place& place : form_.places) {
    if (!Fits(place)) return false;
  }
  return true;
}

// mov, not, and, or, xor of predicates, any of them negated or 0 or 1: one truth table.
bool Builder::PredicateLogic() {
  const bool unary = in_.opcode == "mov" || in_.opcode == "not";
  if (!Operands(unary ? 2 : 3)) return false;
  const auto literal = [](const Operand& o) { return o.kind == Operand::Kind::kInt; };
  const auto value = [&](int i, std::uint32_t bit) {
    const Operand& o = At(i);
    if (literal(o)) return o.imm != 0;
    return (bit != 0) != o.negated;
  };
  for (std::uint32_t row = 0; row < 4; ++row) {
    const bool a = value(1, row >> 1), b = unary ? false : value(2, row & 1);
    const bool r = in_.opcode == "mov"   ? a
                   : in_.opcode == "not" ? !a
                   : in_.opcode == "and" ? a && b
                   : in_.opcode == "or"  ? a || b
                                         : a != b;
    if (r) form_.imm |= 1u << row;
  }
  Put(Where::kD, 0, Type::kPred);
  const int last = unary ? 1 : 2;
  const int first_register = literal(At(1)) ? last : 1;
  if (literal(At(first_register))) {
    // All rows that can occur agree.
    form_.imm &= 1;
    return Done(Key(AluOp::kPredConstant, Type::kPred));
  }
  // A literal's place is taken by the other operand, whose value then does not matter.
  Put(Where::kS0, literal(At(1)) ? last : 1, Type::kPred);
  Put(Where::kS1, literal(At(last)) ? 1 : last, Type::kPred);
  return Done(Key(AluOp::kPredicateLogic, Type::kPred));
}

bool Builder::Mov() {
  if (words_.types != 1) return false;
  const Type type = words_.type;
  if (type == Type::kPred) return PredicateLogic();
  if (!Operands(2)) return false;
  const Type whole = Unsigned(type);
  const int bytes = Bytes(type);
  const bool pack = At(1).kind == Operand::Kind::kVector;
  const bool unpack = At(0).kind == Operand::Kind::kVector;
  if (pack && unpack) return false;
  if (pack || unpack) {
    const std::size_t n = At(pack ? 1 : 0).elements.size();
    if (n != 2 && n != 4) return false;
    const int part_bytes = bytes / static_cast<int>(n);
    if (part_bytes < 1) return false;
    const Type part = part_bytes == 1   ? Type::kB8
                      : part_bytes == 2 ? Type::kB16
                      : part_bytes == 4 ? Type::kB32
                                        : Type::kB64;
    if (pack) {
      Put(Where::kD, 0, type);
      for (int i = 0; i < static_cast<int>(n); ++i) {
        Put(static_cast<Where>(static_cast<int>(Where::kS0) + i), 1, part, i);
      }
      return Done(Key(n == 2 ? AluOp::kPack2 : AluOp::kPack4, whole));
    }
    constexpr Where kTargets[] = {Where::kD, Where::kD2, Where::kS2, Where::kS3};
    for (int i = 0; i < static_cast<int>(n); ++i) Put(kTargets[i], 0, part, i);
    Put(Where::kS0, 1, type);
    if (n == 4) form_.flags |= kExtraDestinations;
    return Done(Key(n == 2 ? AluOp::kUnpack2 : AluOp::kUnpack4, whole));
  }
  Plain3(type, {type});
  return Done(Key(AluOp::kMov, whole));
}

namespace {

// The window of a state space, 0 for those that are addressed as they are.
bool WindowOf(std::string_view space, std::uint32_t* window) {
  if (space == "shared" || space == "shared::cta" || space == "shared::cluster") {
    *window = kSharedWindow;
  } else if (space == "local") {
    *window = kLocalWindow;
  } else if (space == "param" || space == "param::entry") {
    *window = kParamWindow;
  } else if (space == "global" || space == "const") {
    *window = 0;
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool Builder::Cvta() {
  const bool to_space = words_.first == "to";
  const std::size_t at = to_space ? 1 : 0;
  std::uint32_t window = 0;
  if (words_.type != Type::kU64 || !Operands(2) || in_.modifiers.size() != at + 2 ||
      !WindowOf(in_.modifiers[at], &window)) {
    return false;
  }
  Plain3(Type::kU64, {Type::kU64});
  if (window == 0) return Done(Key(AluOp::kMov, Type::kU64), words_.others);
  form_.imm = window | (to_space ? kSubtractBase : 0);
  return Done(Key(AluOp::kAddBase, Type::kU64), words_.others);
}

bool Builder::IsSpacep() {
  std::uint32_t window = 0;
  if (!Operands(2) || in_.modifiers.size() != 1 || !WindowOf(words_.first, &window)) return false;
  Plain3(Type::kPred, {Type::kU64});
  form_.imm = words_.first == "const" ? kNoSpace : window;
  return Done(Key(AluOp::kIsSpace, Type::kPred), 1);
}

bool Builder::Select() {
  const std::string_view op = in_.opcode;
  if (op == "mov") return Mov();
  if (op == "add") return Arithmetic(AluOp::kAdd);
  if (op == "sub") return Arithmetic(AluOp::kSub);
  if (op == "mul") return Mul();
  if (op == "mad") return Mad();
  if (op == "madc" || op == "addc" || op == "subc") return Carry();
  if (op == "fma") {
    if (words_.types == 2) return Mixed(AluOp::kFmaMixed, 3);
    return words_.types == 1 && !IsInteger(words_.type) &&
           FloatBinary(AluOp::kFma, AluOp::kFmaDirected, 3);
  }
  if (op == "mul24") return Mul24(false);
  if (op == "mad24") return Mul24(true);
  if (op == "div") return Division(AluOp::kDiv);
  if (op == "rem") return Division(AluOp::kRem);
  if (op == "min") return Extreme(false);
  if (op == "max") return Extreme(true);
  if (op == "abs") return AbsNeg(AluOp::kAbs);
  if (op == "neg") return AbsNeg(AluOp::kNeg);
  if (op == "and") return Logic(AluOp::kAnd);
  if (op == "or") return Logic(AluOp::kOr);
  if (op == "xor") return Logic(AluOp::kXor);
  if (op == "not") return Logic(AluOp::kNot);
  if (op == "cnot") return Logic(AluOp::kCnot);
  if (op == "shl") return Shift(AluOp::kShl);
  if (op == "shr") return Shift(AluOp::kShr);
  if (op == "shf") return Funnel();
  if (op == "lop3") return Lop3();
  if (op == "prmt") return Prmt();
  if (op == "setp") return Compare(true);
  if (op == "set") return Compare(false);
  if (op == "selp") return Selp();
  if (op == "slct") return Slct();
  if (op == "testp") return Testp();
  if (op == "dp4a") return DotProduct(true);
  if (op == "dp2a") return DotProduct(false);
  if (op == "cvt") return Cvt();
  if (op == "cvta") return Cvta();
  if (op == "isspacep") return IsSpacep();
  if (op == "rcp") return FloatUnary(AluOp::kRcp, AluOp::kRcpDirected);
  if (op == "sqrt") return FloatUnary(AluOp::kSqrt, AluOp::kSqrtDirected);
  if (op == "rsqrt") return Special(AluOp::kRsqrt);
  if (op == "sin") return Special(AluOp::kSin);
  if (op == "cos") return Special(AluOp::kCos);
  if (op == "lg2") return Special(AluOp::kLg2);
  if (op == "ex2") return Special(AluOp::kEx2);
  if (op == "tanh") return Special(AluOp::kTanh);
  if (op == "copysign") {
    if (!Operands(3) || words_.types != 1) return false;
    Plain3(words_.type, {words_.type, words_.type});
    return Done(Key(AluOp::kCopysign, words_.type));
  }
  if (op.size() > 3 && op[0] == 'v') return Video();
  return Bits();
}

}  // namespace alu

bool SelectAlu(const ptx::Instruction& instruction, AluForm* form,
               const std::vector<ptx::Register>* registers) {
  return alu::Builder(instruction, form, registers).Select();
}

}  // namespace allranks::node
