// Which array of shared memory an address comes from; see decode.h.
//
// A program's arrays in shared memory lie one behind the other, so an index that leaves one of them
// ends up in another and no bound of the memory is hurt. The checker therefore wants to know which
// array an access is meant for. A register belongs to an array if each of its definitions makes it
// from that array's address and numbers; where arrays or unknown things mix it belongs to none, and
// its accesses are not checked.
#include <algorithm>

#include "node/decode/decode_internal.h"

namespace allranks::node {
namespace {

constexpr std::int32_t kUnknown = -3;  // not seen yet
constexpr std::int32_t kNumber = -2;   // no address of shared memory
constexpr std::int32_t kMixed = -1;    // of several arrays, or nobody knows

std::int32_t Merged(std::int32_t a, std::int32_t b) {
  if (a == kUnknown || a == b) return b;
  return b == kUnknown ? a : kMixed;
}

// The sum of an address and numbers.
std::int32_t Sum(std::int32_t a, std::int32_t b) {
  if (a == kUnknown || b == kUnknown) return kUnknown;
  if (a == kNumber) return b;
  return b == kNumber ? a : kMixed;
}

}  // namespace

std::int32_t Decoder::ArrayOf(const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::kReg:
      return array_of_[static_cast<std::size_t>(operand.reg)];
    case Operand::Kind::kSymbol: {
      const auto it = closure_.arrays.find(operand.name);
      return it != closure_.arrays.end() ? it->second : kNumber;
    }
    case Operand::Kind::kAddress:
    case Operand::Kind::kVector:
    case Operand::Kind::kList:
    case Operand::Kind::kPair: {
      std::int32_t all = kNumber;
      for (const Operand& element : operand.elements) {
        const std::int32_t of = ArrayOf(element);
        if (of == kUnknown) return kUnknown;
        if (of != kNumber) all = kMixed;
      }
      return all;
    }
    default:
      return kNumber;
  }
}

// What an instruction's results are made of.
std::int32_t Decoder::ArrayOfResult(const Instruction& in) const {
  const std::string_view name = in.opcode;
  const auto at = [&](std::size_t i) { return ArrayOf(in.operands[i]); };
  const std::size_t count = in.operands.size();
  if (name == "ld" || name == "ldu" || name == "atom" || name == "call") return kNumber;
  if (((name == "mov" && in.modifiers.size() == 1) || name == "cvta") && count == 2) return at(1);
  if (name == "cvt" && count == 2 && in.modifiers.size() == 2) return at(1);
  if (name == "add" && count == 3) return Sum(at(1), at(2));
  if (name == "or" && count == 3 && in.operands[2].kind == Operand::Kind::kInt) return at(1);
  if (name == "sub" && count == 3 && at(2) == kNumber) return at(1);
  if (name == "mad" && count == 4 && at(1) == kNumber && at(2) == kNumber) return at(3);
  if (name == "selp" && count == 4) return Merged(at(1), at(2));
  std::int32_t all = kNumber;
  for (std::size_t i = static_cast<std::size_t>(DestinationCount(in)); i < count; ++i) {
    const std::int32_t of = at(i);
    if (of == kUnknown) return kUnknown;
    if (of != kNumber) all = kMixed;
  }
  return all;
}

void Decoder::FindArrays() {
  array_of_.assign(function_.registers.size(), kUnknown);
  if (code_->arrays.size() < 2) {  // nothing to run into
    array_of_.assign(function_.registers.size(), kMixed);
    return;
  }
  const auto set = [&](const Operand& operand, std::int32_t of, const auto& self) -> bool {
    bool changed = false;
    if (operand.kind == Operand::Kind::kReg) {
      std::int32_t& known = array_of_[static_cast<std::size_t>(operand.reg)];
      const std::int32_t now = Merged(known, of);
      changed = now != known;
      known = now;
    }
    for (const Operand& element : operand.elements) changed |= self(element, of, self);
    return changed;
  };
  for (bool again = true; again;) {
    again = false;
    for (const Instruction& in : function_.code) {
      const int results = DestinationCount(in);
      if (results == 0) continue;
      const std::int32_t of = ArrayOfResult(in);
      for (int i = 0; i < results; ++i)
        again |= set(in.operands[static_cast<std::size_t>(i)], of, set);
    }
  }
}

}  // namespace allranks::node
