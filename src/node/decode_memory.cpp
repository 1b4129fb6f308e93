// Loads, stores, atomics, reductions and fences: instruction → MemoryOp. See decode.h.
#include <unordered_map>

#include "node/decode_internal.h"

namespace allranks::node {
namespace {

using ptx::Instruction;
using ptx::Space;

constexpr std::size_t kMaxAccessBytes = 32;  // of one lane: v8.b32, v4.b64

Space SpaceOf(const Instruction& in) {
  for (std::string_view word : in.modifiers) {
    if (word == "global") return Space::kGlobal;
    if (word == "const") return Space::kConst;
    if (word == "shared" || word == "shared::cta" || word == "shared::cluster")
      return Space::kShared;
    if (word == "local") return Space::kLocal;
    if (word == "param" || word == "param::entry" || word == "param::func") return Space::kParam;
  }
  return Space::kNone;
}

Scope ScopeOf(const Instruction& in, Scope otherwise) {
  if (in.Has("sys")) return Scope::kSys;
  if (in.Has("gpu") || in.Has("gl")) return Scope::kGpu;
  if (in.Has("cluster")) return Scope::kCluster;
  if (in.Has("cta")) return Scope::kCta;
  return otherwise;
}

Order OrderOf(const Instruction& in, Order otherwise) {
  for (std::string_view word : in.modifiers) {
    if (word == "volatile" || word == "mmio") return Order::kVolatile;
    if (word == "relaxed") return Order::kRelaxed;
    if (word == "acquire") return Order::kAcquire;
    if (word == "release") return Order::kRelease;
    if (word == "acq_rel") return Order::kAcqRel;
    if (word == "sc") return Order::kSc;
    if (word == "weak") return Order::kWeak;
  }
  return otherwise;
}

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
      ref.what = ConstantRef::What::kParam;
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

bool Decoder::LoadStore(const Instruction& in, bool load) {
  if (in.operands.size() < 2) return false;
  MemoryOp op;
  op.space = SpaceOf(in);
  if (load && op.space == Space::kParam && LoadParam(in)) return true;
  op.what = load ? MemoryOp::What::kLoad : MemoryOp::What::kStore;
  op.type = in.TypeFromEnd();
  op.bytes = static_cast<std::uint8_t>(ptx::SizeOf(op.type));
  if (op.bytes == 0) return false;
  op.order = OrderOf(in, Order::kWeak);
  op.scope = ScopeOf(in, Scope::kSys);
  for (std::string_view word : in.modifiers) {
    // Forms whose meaning is more than a load or store.
    if (word == "async" || word == "bulk" || word == "mmio") return false;
  }
  const Operand& address = in.operands[load ? 1 : 0];
  const Operand& data = in.operands[load ? 0 : 1];
  if (!Address(address, &op)) return false;
  if (!load && (op.space == Space::kParam || op.space == Space::kConst)) return false;
  std::vector<Operand> elements;
  if (data.kind == Operand::Kind::kVector) {
    elements = data.elements;
  } else {
    elements.push_back(data);
  }
  if (elements.empty() || elements.size() > 8 || elements.size() * op.bytes > kMaxAccessBytes)
    return false;
  op.count = static_cast<std::uint8_t>(elements.size());
  int width = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].kind == Operand::Kind::kReg) {
      width = std::max(width, SlotBytes(RegisterType(elements[i])));
    }
  }
  if (width == 0) width = std::max<int>(4, op.bytes);
  if (width < op.bytes || (width == 16 && op.bytes != 16)) return false;
  for (const Operand& element : elements) {
    if (element.kind == Operand::Kind::kReg && !HasWidth(element, width)) return false;
  }
  op.register_bytes = static_cast<std::uint8_t>(width);
  if (load && elements[0].kind == Operand::Kind::kReg &&
      ptx::SizeOf(RegisterType(elements[0])) == 2) {
    op.register_bytes = 2;  // a slot, but extended only to 16 bits
  }
  const bool is_float = op.type == Type::kF32 || op.type == Type::kF64;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (load) {
      if (!Destination(elements[i], width, &op.data[i])) return false;
      continue;
    }
    op.data[i] = Place(elements[i], width, is_float, op.bytes == 2 ? 16 : 0);
    if (op.data[i] == kNoSlot) return false;
  }
  Op out = Start(in, OpKind::kMemory);
  out.aux = static_cast<std::uint32_t>(code_->memory.size());
  out.d = load ? op.data[0] : kNoSlot;
  code_->memory.push_back(op);
  Emit(out);
  return true;
}

bool Decoder::Atomic(const Instruction& in, bool reduce) {
  static const std::unordered_map<std::string_view, AtomicOp> kOps = {
      {"exch", AtomicOp::kExch}, {"cas", AtomicOp::kCas}, {"add", AtomicOp::kAdd},
      {"min", AtomicOp::kMin},   {"max", AtomicOp::kMax}, {"inc", AtomicOp::kInc},
      {"dec", AtomicOp::kDec},   {"and", AtomicOp::kAnd}, {"or", AtomicOp::kOr},
      {"xor", AtomicOp::kXor}};
  MemoryOp op;
  op.what = reduce ? MemoryOp::What::kReduce : MemoryOp::What::kAtomic;
  op.space = SpaceOf(in);
  op.type = in.TypeFromEnd();
  op.bytes = static_cast<std::uint8_t>(ptx::SizeOf(op.type));
  op.order = OrderOf(in, Order::kRelaxed);
  op.scope = ScopeOf(in, Scope::kGpu);
  for (std::string_view word : in.modifiers) {
    if (const auto it = kOps.find(word); it != kOps.end()) op.atomic = it->second;
    if (word == "v2" || word == "v4" || word == "v8" || word == "async") return false;
  }
  const bool float_add =
      op.atomic == AtomicOp::kAdd && (op.type == Type::kF32 || op.type == Type::kF64);
  const bool integer = op.type == Type::kB32 || op.type == Type::kB64 || op.type == Type::kU32 ||
                       op.type == Type::kS32 || op.type == Type::kU64 || op.type == Type::kS64;
  if (op.atomic == AtomicOp::kNone || !(integer || float_add)) return false;
  const std::size_t first = reduce ? 0 : 1;
  const std::size_t sources = op.atomic == AtomicOp::kCas ? 2 : 1;
  if (in.operands.size() < first + 1 + sources || !Address(in.operands[first], &op)) return false;
  op.register_bytes = static_cast<std::uint8_t>(std::max<int>(4, op.bytes));
  const bool is_float = float_add;
  if (!reduce && !Destination(in.operands[0], op.register_bytes, &op.data[0])) return false;
  if (op.atomic == AtomicOp::kCas) {
    op.compare = Place(in.operands[first + 1], op.register_bytes, is_float);
    op.operand = Place(in.operands[first + 2], op.register_bytes, is_float);
    if (op.compare == kNoSlot) return false;
  } else {
    op.operand = Place(in.operands[first + 1], op.register_bytes, is_float);
  }
  if (op.operand == kNoSlot) return false;
  Op out = Start(in, OpKind::kMemory);
  out.aux = static_cast<std::uint32_t>(code_->memory.size());
  out.d = op.data[0];
  code_->memory.push_back(op);
  Emit(out);
  return true;
}

bool Decoder::Fence(const Instruction& in) {
  MemoryOp op;
  op.what = MemoryOp::What::kFence;
  op.order = OrderOf(in, Order::kAcqRel);
  op.scope = ScopeOf(in, Scope::kCta);
  Op out = Start(in, OpKind::kFence);
  out.aux = static_cast<std::uint32_t>(code_->memory.size());
  code_->memory.push_back(op);
  Emit(out);
  return true;
}

}  // namespace allranks::node
