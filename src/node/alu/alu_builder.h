// The working state of SelectAlu(): an instruction's words, and a builder with one method per
// family of instructions. Private to alu_select*.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "node/alu/alu.h"
#include "node/alu/alu_internal.h"
#include "node/alu/alu_table.h"

namespace allranks::node::alu {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;
using Where = AluForm::Place::Where;

inline int Bytes(Type type) { return ptx::SizeOf(type); }

inline bool IsInteger(Type t) {
  switch (t) {
    case Type::kB8:
    case Type::kU8:
    case Type::kS8:
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
      return true;
    default:
      return false;
  }
}
inline bool IsSigned(Type t) {
  return t == Type::kS8 || t == Type::kS16 || t == Type::kS32 || t == Type::kS64;
}
inline bool IsFloat(Type t) {
  return t == Type::kF16 || t == Type::kBF16 || t == Type::kF32 || t == Type::kF64;
}
// The unsigned type of the same width; what moves and sign-blind arithmetic are keyed by.
inline Type Unsigned(Type t) {
  switch (Bytes(t)) {
    case 1:
      return Type::kU8;
    case 2:
      return Type::kU16;
    case 4:
      return Type::kU32;
    case 8:
      return Type::kU64;
    case 16:
      return Type::kB128;
    default:
      return Type::kNone;
  }
}
// b32 and u32 mean the same to everything that tells signed from unsigned.
inline Type Plain(Type t) { return IsInteger(t) && !IsSigned(t) ? Unsigned(t) : t; }

// The words of an instruction that arithmetic knows.
struct Words {
  Type type = Type::kNone;   // the last type
  Type type2 = Type::kNone;  // the one before it
  Type type3 = Type::kNone;
  int types = 0;
  bool ftz = false, sat = false, nan = false, xorsign = false, approx = false, full = false;
  bool relu = false, satfinite = false, wide = false, hi = false, lo = false, cc = false;
  bool absolute = false, oob = false;
  bool integral = false;  // rni, rzi, rmi, rpi
  bool rounded = false;
  std::uint32_t rounding = kRn;
  std::string_view first;  // first modifier: comparison, shift direction, ...
  std::string_view other;  // a word that is none of the above
  int others = 0;
};

Words ReadWords(const Instruction& in);

// Builds one AluForm; Done() checks it against the operands and the registers.
class Builder {
 public:
  Builder(const Instruction& in, AluForm* form, const std::vector<ptx::Register>* registers)
      : in_(in), form_(*form), registers_(registers), words_(ReadWords(in)) {
    form_ = AluForm{};
  }

  bool Select();

 private:
  // --- placing operands ---
  void Put(Where where, int operand, Type type, int element = -1) {
    AluForm::Place place;
    place.where = where;
    place.operand = static_cast<std::uint8_t>(operand);
    if (element >= 0) place.element = static_cast<std::uint8_t>(element);
    if (type == Type::kPred) {
      place.predicate = true;
    } else {
      const int bytes = Bytes(type);
      place.bytes = static_cast<std::uint8_t>(bytes < 4 ? 4 : bytes);
      place.is_float = type == Type::kF32 || type == Type::kF64;
      place.literal_bits = static_cast<std::uint8_t>(bytes < 4 ? 8 * bytes : 0);
    }
    form_.places.push_back(place);
  }
  // Destination `d`, then the sources in order of the operands.
  void Plain3(Type d, std::initializer_list<Type> sources) {
    Put(Where::kD, 0, d);
    int i = 1;
    for (const Type s : sources) {
      Put(static_cast<Where>(static_cast<int>(Where::kS0) + i - 1), i, s);
      ++i;
    }
  }
  bool Operands(std::size_t n) const { return in_.operands.size() == n; }
  const Operand& At(int i) const { return in_.operands[static_cast<std::size_t>(i)]; }

  // `others` of the words that Words has no field for are understood.
  bool Done(std::uint32_t key, int others = 0) {
    if (words_.others != others) return false;
    form_.fn = FindHandler(key);
    return form_.fn != nullptr && Fits();
  }
  bool Fits() const;
  bool Fits(const AluForm::Place& place) const;

  // --- one function per family ---
  bool Mov();
  bool PredicateLogic();
  bool Arithmetic(AluOp what);
  bool Mixed(AluOp what, int sources);
  bool Mul();
  bool Mad();
  bool Mul24(bool add);
  bool Carry();
  bool Division(AluOp what);
  bool Extreme(bool maximum);
  bool AbsNeg(AluOp what);
  bool Logic(AluOp what);
  bool Bits();
  bool Shift(AluOp what);
  bool Funnel();
  bool Lop3();
  bool Prmt();
  bool Compare(bool to_predicate);
  bool Selp();
  bool Slct();
  bool Testp();
  bool DotProduct(bool four);
  bool Cvt();
  bool CvtToInteger(Type to, Type from);
  bool CvtToFloat(Type to, Type from);
  bool CvtToHalves(Type to);
  bool CvtToSmall(std::string_view to, Type from);
  bool CvtFromSmall(Type to, std::string_view from);
  bool CvtPack();
  bool Cvta();
  bool IsSpacep();
  bool FloatBinary(AluOp what, AluOp directed, int sources);
  bool FloatUnary(AluOp what, AluOp directed);
  bool Special(AluOp what);
  bool Video();
  bool VideoSimd(std::uint32_t what, int parts);

  std::uint32_t DirectedImm() const {
    return words_.rounding | (words_.ftz ? kImmFtz : 0) | (words_.sat ? kImmSat : 0);
  }
  // Of a slow conversion, whose registers may be wider than its types: also places both.
  std::uint32_t PlaceConvert(Type to, Type from) {
    const int source = RegisterBytes(1) > Bytes(from) ? RegisterBytes(1) : Bytes(from);
    const int least = Bytes(to) < 2 ? 2 : Bytes(to);
    const int result = RegisterBytes(0) > 0 ? RegisterBytes(0) : least;
    Plain3(result == 8 ? Type::kB64 : to, {source == 8 ? Type::kB64 : from});
    return DirectedImm() | (words_.relu ? kImmRelu : 0) | (words_.satfinite ? kImmSatfinite : 0) |
           (source == 8 ? kImmWideSource : 0) | (words_.integral ? kImmIntegral : 0) |
           static_cast<std::uint32_t>(from) << kImmSourceShift |
           static_cast<std::uint32_t>(to) << kImmResultShift |
           static_cast<std::uint32_t>(result) << kImmExtendShift;
  }
  // Whether no register is wider than its type, as the fast conversions want it.
  bool ExactWidths(Type to, Type from) const {
    return RegisterBytes(0) <= Bytes(to) && RegisterBytes(1) <= Bytes(from);
  }
  // Width in bytes of the register operand i is, or 0 if it is none or nothing is known.
  int RegisterBytes(int i) const {
    const Operand& o = At(i);
    if (registers_ == nullptr || o.kind != Operand::Kind::kReg) return 0;
    if (o.reg < 0 || static_cast<std::size_t>(o.reg) >= registers_->size()) return 0;
    return Bytes((*registers_)[static_cast<std::size_t>(o.reg)].type);
  }

  const Instruction& in_;
  AluForm& form_;
  const std::vector<ptx::Register>* registers_;
  Words words_;
  bool selectors_ = false;  // registers may have selectors (%r1.b0) and minus signs
};

}  // namespace allranks::node::alu
