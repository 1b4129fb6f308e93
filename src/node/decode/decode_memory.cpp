// Loads, stores, and hints on caches: instruction → MemoryOp. See decode.h; atomics are in
// decode_atomic.cpp, fences in decode_fence.cpp.
#include "node/code/memory_words.h"
#include "node/decode/decode_internal.h"

namespace allranks::node {
namespace {

constexpr std::size_t kMaxAccessBytes = 32;  // of one lane: v8.b32, v4.b64

}  // namespace

bool Decoder::LoadParam(const Instruction& in) {
  const Operand& address = in.operands[1];
  if (address.kind != Operand::Kind::kAddress || address.elements.empty() ||
      address.elements[0].kind != Operand::Kind::kSymbol) {
    return false;
  }
  const auto param = params_.find(address.elements[0].name);
  if (param == params_.end()) return false;
  const Type type = in.TypeFromEnd();
  const int size = ptx::SizeOf(type);
  if (size == 0 || size > 8) return false;
  std::vector<Operand> targets;
  if (in.operands[0].kind == Operand::Kind::kVector) {
    targets = in.operands[0].elements;
  } else {
    targets.push_back(in.operands[0]);
  }
  std::uint64_t offset = param->second + address.imm + address.elements[0].imm;
  for (const Operand& target : targets) {
    if (target.kind == Operand::Kind::kReg) {
      if (!HasWidth(target, 4) && !HasWidth(target, 8)) return false;
      if (offset + static_cast<std::uint64_t>(size) > code_->param_bytes) return false;
      ConstantRef ref;
      ref.source = ConstantRef::Source::kParam;
      ref.bytes = static_cast<std::uint8_t>(SlotBytes(RegisterType(target)));
      ref.type = type;
      ref.offset = static_cast<std::uint32_t>(offset);
      Op op = Start(in, OpKind::kAlu);
      op.s[0] = Reference(ref);
      op.d = flow_.place[static_cast<std::size_t>(target.reg)];
      op.alu = ref.bytes == 4 ? CopySlot<std::uint32_t> : CopySlot<std::uint64_t>;
      if (op.s[0] == kNoSlot || ref.bytes > 8) return false;
      if (op.d != kNoSlot) Emit(op);
    }
    offset += static_cast<std::uint64_t>(size);
  }
  return true;
}

// Registers, literals or `_` of a load's or store's data operand, into op->data. False if they do
// not fit the type.
bool Decoder::DataElements(const Operand& data, bool load, MemoryOp* op) {
  const bool vector = data.kind == Operand::Kind::kVector;
  const Operand* elements = vector ? data.elements.data() : &data;
  const std::size_t count = vector ? data.elements.size() : 1;
  if (count != op->count || count * op->bytes > kMaxAccessBytes) return false;
  int width = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (elements[i].kind == Operand::Kind::kReg) {
      width = std::max(width, SlotBytes(RegisterType(elements[i])));
    }
  }
  if (width == 0) width = std::max<int>(4, op->bytes);
  if (width < op->bytes || (width == 16 && op->bytes != 16)) return false;
  op->register_bytes = static_cast<std::uint8_t>(width);
  if (load && elements[0].kind == Operand::Kind::kReg &&
      ptx::SizeOf(RegisterType(elements[0])) == 2) {
    op->register_bytes = 2;  // a slot, but extended only to 16 bits
  }
  const bool is_float = op->type == Type::kF32 || op->type == Type::kF64;
  for (std::size_t i = 0; i < count; ++i) {
    const Operand& element = elements[i];
    if (load) {
      if (!Destination(element, width, &op->data[i])) return false;
      continue;
    }
    if (element.kind == Operand::Kind::kSink && vector) continue;  // not stored
    if (width == 16 && element.kind != Operand::Kind::kReg) return false;
    op->data[i] = Place(element, width, is_float, op->bytes == 2 ? 16 : 0);
    if (op->data[i] == kNoSlot) return false;
  }
  return true;
}

void Decoder::EmitMemory(const Instruction& in, const MemoryOp& op) {
  Op out = Start(in, op.kind == MemoryOpKind::kFence ? OpKind::kFence : OpKind::kMemory);
  out.aux = static_cast<std::uint32_t>(code_->memory.size());
  const bool result = op.kind == MemoryOpKind::kLoad || op.kind == MemoryOpKind::kAtomic;
  out.d = result ? op.data[0] : kNoSlot;
  code_->memory.push_back(op);
  Emit(out);
}

// The operands behind `count` of them: only a cache policy, which has no effect on results.
bool Decoder::OnlyPolicyBehind(const Instruction& in, std::size_t count, bool hint) {
  if (in.operands.size() == count) return true;
  return hint && in.operands.size() == count + 1 && Place(in.operands[count], 8, false) != kNoSlot;
}

bool Decoder::LoadStore(const Instruction& in, bool load) {
  const MemoryWords words = ReadMemoryWords(in);
  if (!words.unknown.empty() || words.noftz || words.atomic != AtomicOp::kNone) return false;
  if (!OnlyPolicyBehind(in, 2, words.cache_hint)) return false;
  MemoryOp op;
  op.space = words.space;
  if (load && op.space == Space::kParam && LoadParam(in)) return true;
  op.kind = load ? MemoryOpKind::kLoad : MemoryOpKind::kStore;
  op.type = words.type;
  op.bytes = static_cast<std::uint8_t>(ptx::SizeOf(op.type));
  op.count = static_cast<std::uint8_t>(words.vector);
  if (op.bytes == 0) return false;
  if (words.mmio || words.is_volatile) {
    // Both are relaxed at system scope and may not be combined or left out, which nothing here
    // does.
    if (words.weak || (words.has_order && words.order != Order::kRelaxed)) return false;
    op.order = Order::kVolatile;
    op.scope = Scope::kSys;
  } else if (words.has_order) {
    if (words.weak || words.nc || words.order != Order::kRelaxed) {
      if (words.weak || words.nc || words.order != (load ? Order::kAcquire : Order::kRelease))
        return false;
    }
    op.order = words.order;
    op.scope = words.scope;
  }
  op.proxy = load && words.nc;
  const Operand& address = in.operands[load ? 1 : 0];
  if (!Address(address, &op)) return false;
  // A function's parameters are in its local frame; an entry's are not, but those of its calls are.
  if (op.space == Space::kParam && (!IsEntry() || words.function_param || !load)) {
    op.space = Space::kLocal;
  }
  if (!load && op.space == Space::kConst) return false;
  if (!DataElements(in.operands[load ? 0 : 1], load, &op)) return false;
  const bool stores_all =
      load || std::find(op.data, op.data + op.count, kNoSlot) == op.data + op.count;
  op.plain = !op.Strong() && (op.space == Space::kGlobal || op.space == Space::kNone) &&
             op.address != kNoSlot && !op.address32 && (op.bytes == 4 || op.bytes == 8) &&
             op.bytes == op.register_bytes && stores_all;
  EmitMemory(in, op);
  return true;
}

// prefetch, prefetchu, discard, applypriority: no effect on results. (discard leaves undefined
// bytes, of which the old ones are one choice.)
bool Decoder::CacheHint(const Instruction& in) {
  for (const std::string_view word : in.modifiers) {
    const bool known = word == "global" || word == "local" || word == "L1" || word == "L2" ||
                       word == "tensormap" || word == "const" || word == "param" ||
                       word == "param::entry" || word == "L2::evict_last" ||
                       word == "L2::evict_normal";
    if (!known) return false;
  }
  MemoryOp op;
  const bool sized = in.opcode == "discard" || in.opcode == "applypriority";
  if (in.operands.size() != (sized ? 2u : 1u) || !Address(in.operands[0], &op)) return false;
  if (sized && in.operands[1].kind != Operand::Kind::kInt) return false;
  Emit(Start(in, OpKind::kNop));
  return true;
}

// A policy is opaque to programs; here it is one number for all, since no cache asks for it.
bool Decoder::CreatePolicy(const Instruction& in) {
  const std::size_t least = in.Has("fractional") ? 1 : 2;  // the fraction may be left out
  if (in.operands.size() < least || !in.Has("b64")) return false;
  Op op = Start(in, OpKind::kAlu);
  op.alu = CopySlot<std::uint64_t>;
  op.s[0] = in.Has("cvt") ? Place(in.operands[1], 8, false) : Literal(1, 8);
  if (op.s[0] == kNoSlot || !Destination(in.operands[0], 8, &op.d)) return false;
  if (!in.Has("cvt") && !in.Has("fractional") && !in.Has("range")) return false;
  if (op.d == kNoSlot) op.kind = OpKind::kNop;
  Emit(op);
  return true;
}

}  // namespace allranks::node
