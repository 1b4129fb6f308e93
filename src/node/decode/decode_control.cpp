// Branches, barriers, warp-wide operations, special registers, and what goes to the arithmetic
// handlers. See decode.h.
#include <unordered_map>

#include "node/alu/alu.h"
#include "node/code/special.h"
#include "node/decode/decode.h"
#include "node/decode/decode_internal.h"

namespace allranks::node {
bool Decoder::Branch(const Instruction& in) {
  if (in.operands.size() != 1 || in.operands[0].kind != Operand::Kind::kSymbol) return false;
  const auto label = function_.labels.find(in.operands[0].name);
  if (label == function_.labels.end()) return false;
  BranchOp branch;
  branch.target = label->second;  // instruction index; made an op index in Run
  branch.reconverge = flow_.reconverge[at_];
  branch.back_edge = label->second <= at_;
  Op op = Start(in, OpKind::kBranch);
  op.aux = static_cast<std::uint32_t>(code_->branches.size());
  code_->branches.push_back(branch);
  Emit(op);
  return true;
}

bool Decoder::BranchIndexed(const Instruction& in) {
  if (in.operands.size() != 2 || in.operands[1].kind != Operand::Kind::kSymbol) return false;
  const auto list = function_.target_lists.find(in.operands[1].name);
  if (list == function_.target_lists.end()) return false;
  BranchTable table;
  table.index = Place(in.operands[0], 4, false);
  if (table.index == kNoSlot) return false;
  for (const std::string_view name : list->second) {
    const auto label = function_.labels.find(name);
    if (label == function_.labels.end()) return false;
    table.targets.push_back(label->second);  // made op indices in Run
  }
  table.reconverge = flow_.reconverge[at_];
  Op op = Start(in, OpKind::kBranchIndexed);
  op.aux = static_cast<std::uint32_t>(code_->tables.size());
  code_->tables.push_back(std::move(table));
  Emit(op);
  return true;
}

// Arguments and results of a call: variables of the caller's frame.
bool Decoder::FramePlaces(const Operand& list, std::vector<FramePlace>* places) const {
  for (const Operand& element : list.elements) {
    const auto it = frame_.find(element.name);
    if (element.kind != Operand::Kind::kSymbol || it == frame_.end()) return false;
    places->push_back(it->second);
  }
  return true;
}

CallOp::Builtin BuiltinOf(std::string_view name) {
  static const std::unordered_map<std::string_view, CallOp::Builtin> kBuiltins = {
      {"vprintf", CallOp::Builtin::kPrintf},
      {"__assertfail", CallOp::Builtin::kAssertFail},
      {"malloc", CallOp::Builtin::kMalloc},
      {"free", CallOp::Builtin::kFree}};
  const auto found = kBuiltins.find(name);
  return found == kBuiltins.end() ? CallOp::Builtin::kNone : found->second;
}

// call (results), target, (arguments), prototype or list of targets
bool Decoder::Call(const Instruction& in) {
  CallOp call;
  std::size_t next = 0;
  if (!in.operands.empty() && in.operands[0].kind == Operand::Kind::kList) {
    if (!FramePlaces(in.operands[0], &call.results)) return false;
    ++next;
  }
  if (next >= in.operands.size()) return false;
  const Operand& target = in.operands[next++];
  if (next < in.operands.size() && in.operands[next].kind == Operand::Kind::kList &&
      !FramePlaces(in.operands[next], &call.arguments)) {
    return false;
  }
  if (target.kind == Operand::Kind::kReg) {
    call.target = Place(target, 8, false);
    if (call.target == kNoSlot) return false;
  } else if (target.kind == Operand::Kind::kSymbol) {
    const ptx::Function* function = module_.FindFunction(target.name);
    if (function == nullptr) return false;
    const auto number = closure_.number.find(function);
    if (number != closure_.number.end()) {
      if (number->second == 0) return false;  // an entry cannot be called
      call.function = number->second;
    } else {
      call.builtin = BuiltinOf(target.name);
      if (call.builtin == CallOp::Builtin::kNone) return false;
    }
  } else {
    return false;
  }
  Op op = Start(in, OpKind::kCall);
  op.aux = static_cast<std::uint32_t>(code_->calls.size());
  code_->calls.push_back(std::move(call));
  Emit(op);
  return true;
}

// bar, barrier{.cta}: .sync a{, b}; .arrive a, b; .red.op d, a{, b}, {!}c
bool Decoder::Barrier(const Instruction& in) {
  if (in.Has("cluster")) return false;
  BarrierOp op;
  op.aligned = in.opcode == "bar" || in.Has("aligned");
  const auto& o = in.operands;
  const bool reduce = in.Has("red");
  if (reduce) {
    if (in.Has("popc") + in.Has("and") + in.Has("or") != 1) return false;
    op.kind = in.Has("popc")  ? BarrierOpKind::kRedPopc
              : in.Has("and") ? BarrierOpKind::kRedAnd
                              : BarrierOpKind::kRedOr;
  } else if (in.Has("sync")) {
    op.kind = BarrierOpKind::kSync;
  } else if (in.Has("arrive")) {
    op.kind = BarrierOpKind::kArrive;
  } else {
    return false;
  }
  Op out = Start(in, OpKind::kBarrier);
  const std::size_t first = reduce ? 1 : 0, around = reduce ? 2 : 0;
  if (o.size() < around + 1 || o.size() > around + 2) return false;
  const bool counted = o.size() == around + 2;
  if (op.kind == BarrierOpKind::kArrive && !counted) return false;
  if (reduce) {
    if (op.kind == BarrierOpKind::kRedPopc) {
      if (!Destination(o[0], 4, &out.d)) return false;
    } else if (o[0].kind != Operand::Kind::kSink) {
      if (RegisterType(o[0]) != Type::kPred) return false;
      out.d = Predicate(o[0]);
    }
    op.source = Predicate(o.back());
    op.source_negated = o.back().negated;
    if (op.source == kNoSlot) return false;
  }
  op.id = Place(o[first], 4, false);
  if (op.id == kNoSlot) return false;
  if (counted) {
    op.threads = Place(o[first + 1], 4, false);
    if (op.threads == kNoSlot) return false;
  }
  out.aux = static_cast<std::uint32_t>(code_->barriers.size());
  code_->barriers.push_back(op);
  Emit(out);
  return true;
}

bool Decoder::Warp(const Instruction& in) {
  WarpOp op;
  Op out = Start(in, OpKind::kWarpSync);
  const auto& o = in.operands;
  const auto first = [&](const Operand& operand) -> const Operand& {
    return operand.kind == Operand::Kind::kPair ? operand.elements[0] : operand;
  };
  if (in.opcode == "bar" || in.opcode == "barrier") {  // bar.warp.sync mask
    if (o.size() != 1) return false;
    op.kind = WarpOpKind::kSync;
    op.mask = Place(o[0], 4, false);
  } else if (in.opcode == "activemask") {
    op.kind = WarpOpKind::kActiveMask;
    if (o.size() != 1 || !Destination(o[0], 4, &out.d)) return false;
  } else if (in.opcode == "elect") {
    op.kind = WarpOpKind::kElect;
    if (o.size() != 2 || o[0].kind != Operand::Kind::kPair) return false;
    if (!Destination(o[0].elements[0], 4, &out.d)) return false;
    op.predicate = Predicate(o[0].elements[1]);
    op.mask = Place(o[1], 4, false);
  } else if (in.opcode == "shfl") {
    if (!in.Has("sync") || o.size() != 5) return false;
    op.kind = in.Has("up")     ? WarpOpKind::kShflUp
              : in.Has("down") ? WarpOpKind::kShflDown
              : in.Has("bfly") ? WarpOpKind::kShflBfly
                               : WarpOpKind::kShflIdx;
    if (!Destination(first(o[0]), 4, &out.d)) return false;
    if (o[0].kind == Operand::Kind::kPair) op.predicate = Predicate(o[0].elements[1]);
    op.source = Place(o[1], 4, false);
    op.b = Place(o[2], 4, false);
    op.c = Place(o[3], 4, false);
    op.mask = Place(o[4], 4, false);
    if (op.source == kNoSlot || op.b == kNoSlot || op.c == kNoSlot) return false;
  } else if (in.opcode == "vote") {
    if (!in.Has("sync") || o.size() != 3) return false;
    op.kind = in.Has("ballot") ? WarpOpKind::kBallot
              : in.Has("all")  ? WarpOpKind::kVoteAll
              : in.Has("any")  ? WarpOpKind::kVoteAny
                               : WarpOpKind::kVoteUni;
    if (op.kind != WarpOpKind::kBallot) {
      out.d = Predicate(o[0]);
    } else if (!Destination(o[0], 4, &out.d)) {
      return false;
    }
    op.source = Predicate(o[1]);
    op.source_negated = o[1].negated;
    op.mask = Place(o[2], 4, false);
    if (op.source == kNoSlot) return false;
  } else if (in.opcode == "match") {
    if (!in.Has("sync") || o.size() != 3) return false;
    op.kind = in.Has("all") ? WarpOpKind::kMatchAll : WarpOpKind::kMatchAny;
    op.bytes = in.Has("b64") ? 8 : 4;
    if (!Destination(first(o[0]), 4, &out.d)) return false;
    if (o[0].kind == Operand::Kind::kPair) op.predicate = Predicate(o[0].elements[1]);
    op.source = Place(o[1], op.bytes, false);
    op.mask = Place(o[2], 4, false);
    if (op.source == kNoSlot) return false;
  } else if (in.opcode == "redux") {
    if (!in.Has("sync") || o.size() != 3) return false;
    op.kind = in.Has("add")   ? WarpOpKind::kReduxAdd
              : in.Has("min") ? WarpOpKind::kReduxMin
              : in.Has("max") ? WarpOpKind::kReduxMax
              : in.Has("and") ? WarpOpKind::kReduxAnd
              : in.Has("or")  ? WarpOpKind::kReduxOr
                              : WarpOpKind::kReduxXor;
    op.is_float = in.Has("f32");
    op.absolute = in.Has("abs");
    op.nan_wins = in.Has("NaN");
    if (op.is_float && op.kind != WarpOpKind::kReduxMin && op.kind != WarpOpKind::kReduxMax)
      return false;
    op.is_signed = in.Has("s32");
    if (!Destination(o[0], 4, &out.d)) return false;
    op.source = Place(o[1], 4, false);
    op.mask = Place(o[2], 4, false);
    if (op.source == kNoSlot) return false;
  } else {
    return false;
  }
  if (op.kind != WarpOpKind::kActiveMask && op.mask == kNoSlot) return false;
  out.aux = static_cast<std::uint32_t>(code_->warp_ops.size());
  code_->warp_ops.push_back(op);
  Emit(out);
  return true;
}

// mov from special registers and symbols; other moves are arithmetic.
bool Decoder::Mov(const Instruction& in) {
  if (in.operands.size() != 2) return false;
  const Operand& target = in.operands[0];
  const bool predicate = RegisterType(target) == Type::kPred &&
                         in.operands[1].kind == Operand::Kind::kSpecial &&
                         in.operands[1].name == "%is_explicit_cluster";
  if (!predicate && !HasWidth(target, 4) && !HasWidth(target, 8)) return false;
  const int bytes = predicate ? 1 : SlotBytes(RegisterType(target));
  if (in.operands[1].kind == Operand::Kind::kSpecial) {
    const auto special = SpecialFromName(in.operands[1].name);
    if (!special) return false;
    Op op = Start(in, OpKind::kSpecial);
    op.aux = static_cast<std::uint32_t>(*special);
    op.flags = static_cast<std::uint8_t>(bytes);
    op.d = flow_.place[static_cast<std::size_t>(target.reg)];
    if (op.d == kNoSlot) op.kind = OpKind::kNop;
    Emit(op);
    return true;
  }
  if (in.operands[1].kind != Operand::Kind::kSymbol) return false;
  if (const auto it = frame_.find(in.operands[1].name); it != frame_.end() && !IsEntry()) {
    Op op = Start(in, OpKind::kSpecial);
    op.aux = static_cast<std::uint32_t>(Special::kFrameAddress);
    op.flags = static_cast<std::uint8_t>(bytes);
    op.imm = it->second.offset + static_cast<std::uint32_t>(in.operands[1].imm);
    op.d = flow_.place[static_cast<std::size_t>(target.reg)];
    if (op.d == kNoSlot) op.kind = OpKind::kNop;
    Emit(op);
    return true;
  }
  Op op = Start(in, OpKind::kAlu);
  op.d = flow_.place[static_cast<std::size_t>(target.reg)];
  op.s[0] = Place(in.operands[1], bytes, false);
  op.alu = bytes == 4 ? CopySlot<std::uint32_t> : CopySlot<std::uint64_t>;
  if (op.s[0] == kNoSlot) return false;
  if (op.d == kNoSlot) op.kind = OpKind::kNop;
  Emit(op);
  return true;
}

bool Decoder::Alu(const Instruction& in) {
  AluForm form;
  if (!SelectAlu(in, &form, &function_.registers)) return false;
  Op op = Start(in, OpKind::kAlu);
  op.alu = form.fn;
  op.imm = form.imm;
  op.cycles = form.cycles;
  op.flags = form.flags;
  for (const AluForm::Place& place : form.places) {
    if (place.operand >= in.operands.size()) return false;
    const Operand* operand = &in.operands[place.operand];
    if (place.element != 0xff) {
      if (place.element >= operand->elements.size()) return false;
      operand = &operand->elements[place.element];
    }
    Slot slot = kNoSlot;
    if (operand->kind == Operand::Kind::kSink) {
      slot = kNoSlot;
    } else if (place.predicate) {
      slot = Predicate(*operand);
      if (slot == kNoSlot) return false;
    } else {
      slot = Place(*operand, place.bytes, place.is_float, place.literal_bits);
    }
    using Where = AluForm::Place::Where;
    switch (place.where) {
      case Where::kD:
        op.d = slot;
        break;
      case Where::kD2:
        op.d2 = slot;
        break;
      case Where::kS0:
        op.s[0] = slot;
        break;
      case Where::kS1:
        op.s[1] = slot;
        break;
      case Where::kS2:
        op.s[2] = slot;
        break;
      case Where::kS3:
        op.s[3] = slot;
        break;
    }
    const bool second = place.where == Where::kD2 && (form.flags & kSourceInD2) == 0;
    const bool is_source = place.where != Where::kD && !second &&
                           ((form.flags & kExtraDestinations) == 0 || place.where == Where::kS0 ||
                            place.where == Where::kS1);
    if (is_source && slot == kNoSlot) return false;
  }
  if ((form.flags & (kReadsCarry | kWritesCarry)) != 0) {
    if (carry_ == kNoSlot) carry_ = static_cast<Slot>(predicates_++);
    if ((form.flags & kReadsCarry) != 0) op.s[3] = carry_;
    if ((form.flags & kWritesCarry) != 0) op.d2 = carry_;
  }
  const bool more =
      (form.flags & kExtraDestinations) != 0 && (op.s[2] != kNoSlot || op.s[3] != kNoSlot);
  const bool two = op.d2 != kNoSlot && (form.flags & kSourceInD2) == 0;
  if (op.d == kNoSlot && !two && !more) op.kind = OpKind::kNop;  // result never used
  Emit(op);
  return true;
}

}  // namespace allranks::node
