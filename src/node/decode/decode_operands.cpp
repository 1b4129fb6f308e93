// Operands → slots: registers, literals, symbols, addresses. See decode.h.
#include <cstring>

#include "node/decode/decode.h"
#include "node/decode/decode_internal.h"

namespace allranks::node {

Slot Decoder::NewConstant(int bytes) {
  const std::size_t slot = code_->constants.slots();
  const std::size_t at = bytes > 4 ? (slot + 1) / 2 * 2 : slot;
  if (at > static_cast<std::size_t>(kMaxSlots)) return kNoSlot;
  code_->constants.Resize(at + static_cast<std::size_t>(std::max(1, bytes / 4)));
  return static_cast<Slot>(at | kConstant);
}

Slot Decoder::Literal(std::uint64_t value, int bytes) {
  if (bytes == 4) value &= 0xffffffffu;
  const auto [it, fresh] = closure_.literals.try_emplace({value, bytes}, kNoSlot);
  if (!fresh) return it->second;
  const Slot slot = NewConstant(bytes);
  it->second = slot;
  if (slot == kNoSlot) return slot;
  Broadcast(code_->constants.at(slot & ~kConstant), value, bytes);
  return slot;
}

Slot Decoder::Reference(ConstantRef ref) {
  const Slot slot = NewConstant(ref.bytes);
  if (slot == kNoSlot) return slot;
  ref.slot = static_cast<Slot>(slot & ~kConstant);
  code_->refs.push_back(std::move(ref));
  return slot;
}

Slot Decoder::SymbolSlot(std::string_view name, std::int64_t addend, int bytes) {
  for (const auto* table : {&params_, &closure_.shared}) {
    if (const auto it = table->find(name); it != table->end()) {
      return Literal(it->second + static_cast<std::uint64_t>(addend), bytes);
    }
  }
  if (const auto it = frame_.find(name); it != frame_.end()) {
    // Elsewhere the frame is not where the entry's is: see Mov and Address.
    if (!IsEntry()) return kNoSlot;
    return Literal(it->second.offset + static_cast<std::uint64_t>(addend), bytes);
  }
  if (const auto function = FunctionAddress(module_, name)) return Literal(*function, bytes);
  const ptx::Variable* variable = module_.FindVariable(name);
  if (variable == nullptr ||
      (variable->space != Space::kGlobal && variable->space != Space::kConst)) {
    return kNoSlot;
  }
  ConstantRef ref;
  ref.source = ConstantRef::Source::kSymbol;
  ref.bytes = static_cast<std::uint8_t>(bytes);
  ref.symbol = std::string(name);
  ref.addend = addend;
  return Reference(std::move(ref));
}

Slot Decoder::Place(const Operand& operand, int bytes, bool is_float, int literal_bits) {
  switch (operand.kind) {
    case Operand::Kind::kReg:
      // The text may be hostile: a register of another width would be read or written past its end.
      if (!HasWidth(operand, bytes)) return kNoSlot;
      return RegisterPlace(operand.reg);
    case Operand::Kind::kInt: {
      std::uint64_t value = operand.imm;
      if (literal_bits != 0) value &= (std::uint64_t{1} << literal_bits) - 1;
      if (is_float && literal_bits == 0) {
        // An integer literal where a float is expected is that number.
        if (bytes == 4) {
          const auto f = static_cast<float>(static_cast<std::int64_t>(value));
          std::uint32_t bits = 0;
          std::memcpy(&bits, &f, 4);
          value = bits;
        } else {
          const auto f = static_cast<double>(static_cast<std::int64_t>(value));
          std::memcpy(&value, &f, 8);
        }
      }
      return Literal(value, bytes);
    }
    case Operand::Kind::kF32:
      return Literal(operand.imm, bytes);
    case Operand::Kind::kF64: {
      if (bytes == 8) return Literal(operand.imm, 8);
      double value = 0;
      std::memcpy(&value, &operand.imm, 8);
      const auto narrow = static_cast<float>(value);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &narrow, 4);
      return Literal(bits, 4);
    }
    case Operand::Kind::kSymbol:
      return SymbolSlot(operand.name, static_cast<std::int64_t>(operand.imm), bytes);
    default:
      return kNoSlot;
  }
}

Slot Decoder::Predicate(const Operand& operand) const {
  if (operand.kind != Operand::Kind::kReg || RegisterType(operand) != Type::kPred) return kNoSlot;
  return flow_.place[static_cast<std::size_t>(operand.reg)];
}

Op Decoder::Start(const Instruction& in, OpKind kind) const {
  Op op;
  op.kind = kind;
  op.source = at_;
  if (in.guard >= 0) {
    op.guard = flow_.place[static_cast<std::size_t>(in.guard)];
    op.guard_negated = in.guard_negated;
  }
  return op;
}

bool Decoder::Address(const Operand& operand, MemoryOp* op) {
  if (operand.kind != Operand::Kind::kAddress || operand.elements.empty()) return false;
  const Operand& base = operand.elements[0];
  op->offset = static_cast<std::int64_t>(operand.imm);
  op->array = static_cast<std::int16_t>(std::max(-1, ArrayOf(base)));
  if (base.kind == Operand::Kind::kReg) {
    if (!HasWidth(base, 4) && !HasWidth(base, 8)) return false;
    op->address = RegisterPlace(base.reg);
    op->address32 = SlotBytes(RegisterType(base)) == 4;
    return true;
  }
  if (base.kind == Operand::Kind::kInt) {
    op->offset += static_cast<std::int64_t>(base.imm);
    return true;
  }
  if (base.kind != Operand::Kind::kSymbol) return false;
  op->offset += static_cast<std::int64_t>(base.imm);
  if (const auto it = frame_.find(base.name); it != frame_.end()) {
    op->offset += it->second.offset;
    op->in_frame = true;
    op->space = Space::kLocal;
    return true;
  }
  op->address = SymbolSlot(base.name, 0, 8);
  return op->address != kNoSlot;
}

}  // namespace allranks::node
