// Registers that are constants of a launch, and straight runs of arithmetic: what lets the engine
// execute less than the text says and still count all of it. See decode.h.
#include <algorithm>

#include "node/code/special.h"
#include "node/decode/decode.h"
#include "node/decode/decode_internal.h"

namespace allranks::node {
namespace {

// Calls visit(reg) for each register that the operand names as a whole or in a list.
template <class Visit>
void ForRegisters(const ptx::Operand& operand, Visit visit) {
  if (operand.kind == ptx::Operand::Kind::kReg) visit(operand.reg);
  for (const ptx::Operand& element : operand.elements) ForRegisters(element, visit);
}

}  // namespace

// The constant that the instruction moves into a register of `bytes` bytes, or kNoSlot.
Slot Decoder::LaunchConstant(const Instruction& in, int bytes) {
  const Operand& source = in.operands[1];
  const int size = ptx::SizeOf(in.TypeFromEnd());
  if (in.opcode == "ld") {
    if (!IsEntry() || in.modifiers.size() != 2 || !in.Has("param")) return kNoSlot;
    if (source.kind != Operand::Kind::kAddress || source.elements.size() != 1 ||
        source.elements[0].kind != Operand::Kind::kSymbol || size == 0 || size > 8) {
      return kNoSlot;
    }
    const auto param = params_.find(source.elements[0].name);
    if (param == params_.end()) return kNoSlot;
    const std::uint64_t offset = param->second + source.imm + source.elements[0].imm;
    if (offset + static_cast<std::uint64_t>(size) > code_->param_bytes) return kNoSlot;
    ConstantRef ref;
    ref.bytes = static_cast<std::uint8_t>(bytes);
    ref.type = in.TypeFromEnd();
    ref.offset = static_cast<std::uint32_t>(offset);
    return Reference(std::move(ref));
  }
  const bool is_mov = in.opcode == "mov" && in.modifiers.size() == 1;
  const bool is_cvta = in.opcode == "cvta" && in.Has("global") && bytes == 8;
  if ((!is_mov && !is_cvta) || size != bytes) return kNoSlot;
  switch (source.kind) {
    case Operand::Kind::kReg:
      return HasWidth(source, bytes) ? constant_slot_[static_cast<std::size_t>(source.reg)]
                                     : kNoSlot;
    case Operand::Kind::kInt:
    case Operand::Kind::kF32:
    case Operand::Kind::kF64:
    case Operand::Kind::kSymbol:
      if (!is_mov) return kNoSlot;
      return Place(source, bytes,
                   ptx::Type::kF32 == in.TypeFromEnd() || ptx::Type::kF64 == in.TypeFromEnd());
    case Operand::Kind::kSpecial: {
      const auto special = SpecialFromName(source.name);
      if (!special || !LaunchWide(*special, {}, {})) return kNoSlot;
      ConstantRef ref;
      ref.source = ConstantRef::Source::kSpecial;
      ref.special = *special;
      ref.bytes = static_cast<std::uint8_t>(bytes);
      return Reference(std::move(ref));
    }
    default:
      return kNoSlot;
  }
}

void Decoder::FindLaunchConstants() {
  std::vector<std::uint8_t> definitions(function_.registers.size(), 0);
  for (const Instruction& in : function_.code) {
    const int count = DestinationCount(in);
    for (int i = 0; i < count; ++i) {
      ForRegisters(in.operands[static_cast<std::size_t>(i)], [&](std::int32_t reg) {
        std::uint8_t& n = definitions[static_cast<std::size_t>(reg)];
        n = static_cast<std::uint8_t>(std::min(2, n + 1));
      });
    }
  }
  constant_slot_.assign(function_.registers.size(), kNoSlot);
  constant_move_.assign(function_.code.size(), false);
  for (std::size_t i = 0; i < function_.code.size(); ++i) {
    const Instruction& in = function_.code[i];
    if (in.guard >= 0 || in.operands.size() != 2 || in.operands[0].kind != Operand::Kind::kReg ||
        !in.operands[0].name.empty()) {
      continue;
    }
    const auto reg = static_cast<std::size_t>(in.operands[0].reg);
    if (definitions[reg] != 1 || DestinationCount(in) != 1) continue;
    const Type type = RegisterType(in.operands[0]);
    const int bytes = ptx::SizeOf(type);
    if (type == Type::kPred || (bytes != 4 && bytes != 8)) continue;
    const Slot slot = LaunchConstant(in, bytes);
    if (slot == kNoSlot) continue;
    constant_slot_[reg] = slot;
    constant_move_[i] = true;
  }
}

void Decoder::Emit(Op op) {
  op.count = static_cast<std::uint8_t>(op.count + skipped_);
  op.cycles = static_cast<std::uint8_t>(std::min(255, op.cycles + skipped_));
  skipped_ = 0;
  code_->ops.push_back(op);
}

// Moves that need not be executed are counted by the operation behind them, unless others come
// there by another way.
void Decoder::FlushSkipped() {
  if (skipped_ == 0) return;
  Op op;
  op.kind = OpKind::kNop;
  op.count = 0;
  op.cycles = 0;
  op.source = at_;
  Emit(op);
}

void Decoder::MarkRuns() {
  auto& ops = code_->ops;
  std::vector<bool> begins(ops.size() + 1, false);
  for (const auto& [name, index] : function_.labels) begins[op_of_[index]] = true;
  for (const std::uint32_t meeting : flow_.reconverge) {
    if (meeting != kNoPc) begins[op_of_[meeting]] = true;
  }
  for (std::size_t i = ops.size(); i-- > begin_;) {
    Op& op = ops[i];
    if (op.kind != OpKind::kAlu || op.guard != kNoSlot) continue;
    const bool goes_on = i + 1 < ops.size() && !begins[i + 1];
    op.run = static_cast<std::uint8_t>(1 + (goes_on ? std::min<int>(ops[i + 1].run, 254) : 0));
  }
}

}  // namespace allranks::node
