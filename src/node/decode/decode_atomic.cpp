// Atomics, reductions and multimem: instruction → MemoryOp. See decode.h. The table of operations
// and types is that of the PTX ISA; what it does not have is unsupported.
#include <optional>

#include "node/alu/atomic_ops.h"
#include "node/code/memory_words.h"
#include "node/decode/decode_internal.h"

namespace allranks::node {
namespace {

using ptx::Type;

std::optional<Number> NumberOf(const MemoryWords& words) {
  switch (words.type) {
    case Type::kB16:
      return Number::kU16;
    case Type::kB128:
      return Number::kB128;
    case Type::kF16x2:
      return Number::kF16;
    case Type::kBF16x2:
      return Number::kBF16;
    default:
      if (words.type_word.starts_with("e4m3")) return Number::kE4M3;
      if (words.type_word.starts_with("e5m2")) return Number::kE5M2;
      return node::NumberOf(words.type);
  }
}

// Bytes of one element: packed types are several numbers.
std::uint8_t ElementBytes(const MemoryWords& words, Number number) {
  int bytes = ptx::SizeOf(words.type);
  if (bytes == 0) {
    bytes = BytesOf(number);
    if (words.type_word.ends_with("x2")) bytes *= 2;
    if (words.type_word.ends_with("x4")) bytes *= 4;
  }
  return static_cast<std::uint8_t>(bytes);
}

bool IsHalf(Number number) { return number == Number::kF16 || number == Number::kBF16; }
bool IsFloat(Number number) { return number >= Number::kF16; }

// Whether atom, red or multimem has this operation on this type.
bool Exists(AtomicOp op, const MemoryWords& words, Number number, bool reduce) {
  const Type type = words.type;
  const bool word = type == Type::kB32 || type == Type::kB64;
  switch (op) {
    case AtomicOp::kExch:
      return !reduce && (word || type == Type::kB128);
    case AtomicOp::kCas:
      return !reduce && (word || type == Type::kB16 || type == Type::kB128);
    case AtomicOp::kAnd:
    case AtomicOp::kOr:
    case AtomicOp::kXor:
      return word;
    case AtomicOp::kInc:
    case AtomicOp::kDec:
      return type == Type::kU32;
    case AtomicOp::kAdd:
      return type == Type::kU32 || type == Type::kS32 || type == Type::kU64 || IsFloat(number);
    case AtomicOp::kMin:
    case AtomicOp::kMax:
      return type == Type::kU32 || type == Type::kS32 || type == Type::kU64 || type == Type::kS64 ||
             (IsFloat(number) && BytesOf(number) <= 2);
    default:
      return false;
  }
}

}  // namespace

// The operands of an atomic or reduction, into op->operand.
bool Decoder::AtomicOperands(const Operand& operand, MemoryOp* op) {
  const bool vector = operand.kind == Operand::Kind::kVector;
  const Operand* elements = vector ? operand.elements.data() : &operand;
  if ((vector ? operand.elements.size() : 1) != op->count || vector != (op->count > 1))
    return false;
  for (std::size_t i = 0; i < op->count; ++i) {
    if (op->register_bytes == 16 && elements[i].kind != Operand::Kind::kReg) return false;
    op->operand[i] =
        Place(elements[i], op->register_bytes,
              op->number == Number::kF32 || op->number == Number::kF64, op->bytes == 2 ? 16 : 0);
    if (op->operand[i] == kNoSlot) return false;
  }
  return true;
}

bool Decoder::Atomic(const Instruction& in, bool reduce) {
  const MemoryWords words = ReadMemoryWords(in);
  if (!words.unknown.empty() || words.weak || words.is_volatile || words.mmio || words.nc ||
      words.cache_operator || words.hints) {
    return false;
  }
  const auto number = NumberOf(words);
  if (!number || *number >= Number::kE4M3 || !Exists(words.atomic, words, *number, reduce))
    return false;
  if (IsHalf(*number) != words.noftz || words.order == Order::kSc) return false;
  const bool minimum = words.atomic == AtomicOp::kMin || words.atomic == AtomicOp::kMax;
  // Only floats come as vectors, and minima of floats come only so.
  if (words.vector > 1 ? !IsFloat(*number) || *number == Number::kF64
                       : minimum && IsFloat(*number)) {
    return false;
  }
  if (words.space != Space::kNone && words.space != Space::kGlobal &&
      words.space != Space::kShared) {
    return false;
  }
  MemoryOp op;
  op.kind = reduce ? MemoryOpKind::kReduce : MemoryOpKind::kAtomic;
  op.space = words.space;
  op.type = words.type;
  op.number = *number;
  op.atomic = words.atomic;
  op.order = words.has_order ? words.order : Order::kRelaxed;
  op.scope = words.has_scope ? words.scope : Scope::kGpu;
  op.bytes = ElementBytes(words, *number);
  op.count = static_cast<std::uint8_t>(words.vector);
  if (op.bytes * op.count > 16) return false;
  op.register_bytes = static_cast<std::uint8_t>(std::max<int>(4, op.bytes));

  const auto& o = in.operands;
  const std::size_t first = reduce ? 0 : 1;
  const std::size_t sources = op.atomic == AtomicOp::kCas ? 2 : 1;
  if (o.size() < first + 1 + sources || !Address(o[first], &op)) return false;
  if (!OnlyPolicyBehind(in, first + 1 + sources, words.cache_hint)) return false;
  if (!reduce) {
    const bool vector = o[0].kind == Operand::Kind::kVector;
    const Operand* results = vector ? o[0].elements.data() : &o[0];
    const std::size_t count = vector ? o[0].elements.size() : 1;
    const bool unused = !vector && o[0].kind == Operand::Kind::kSink;
    if (!unused && (count != op.count || vector != (op.count > 1))) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (!Destination(results[i], op.register_bytes, &op.data[i])) return false;
    }
  }
  if (op.atomic == AtomicOp::kCas) {
    if (op.register_bytes == 16 && o[2].kind != Operand::Kind::kReg) return false;
    op.compare = Place(o[2], op.register_bytes, false, op.bytes == 2 ? 16 : 0);
    if (op.compare == kNoSlot) return false;
  }
  if (!AtomicOperands(o[first + sources], &op)) return false;
  EmitMemory(in, op);
  return true;
}

// multimem.ld_reduce, .st, .red: a load, store or reduction on all replicas of a multicast mapping.
bool Decoder::Multimem(const Instruction& in) {
  Instruction plain = in;
  std::erase_if(plain.modifiers, [](std::string_view word) {
    return word == "ld_reduce" || word == "st" || word == "red";
  });
  const MemoryWords words = ReadMemoryWords(plain);
  const bool load = in.Has("ld_reduce"), store = in.Has("st"), reduce = in.Has("red");
  if (load + store + reduce != 1 || !words.unknown.empty() || in.operands.size() != 2) return false;
  if (words.is_volatile || words.mmio || words.nc || words.cache_operator || words.hints ||
      words.cache_hint || words.noftz ||
      (words.space != Space::kNone && words.space != Space::kGlobal)) {
    return false;
  }
  const auto number = NumberOf(words);
  if (!number || *number == Number::kB128 || *number == Number::kU16) return false;
  MemoryOp op;
  op.multimem = true;
  op.kind = load ? MemoryOpKind::kLoad : store ? MemoryOpKind::kStore : MemoryOpKind::kReduce;
  op.space = words.space;
  op.type = words.type;
  op.number = *number;
  op.atomic = words.atomic;
  if (load && op.atomic == AtomicOp::kAdd) {
    op.accumulate = static_cast<std::uint8_t>(words.accumulate);
    if (*number >= Number::kE4M3) op.accumulate = 16;  // their only one
  }
  op.bytes = ElementBytes(words, *number);
  op.count = static_cast<std::uint8_t>(words.vector);
  if (op.bytes * op.count > 16 || (op.count > 1 && !IsFloat(*number))) return false;
  const Order strongest = load ? Order::kAcquire : Order::kRelease;
  if (words.has_order && words.order != Order::kRelaxed && words.order != strongest) return false;
  if (words.has_order && words.weak) return false;
  // A reduction is relaxed if nothing is said, like red; loads and stores are then weak.
  op.order = words.has_order ? words.order : reduce ? Order::kRelaxed : Order::kWeak;
  op.scope = words.has_scope ? words.scope : Scope::kSys;
  if (store ? op.atomic != AtomicOp::kNone : !Exists(op.atomic, words, *number, true)) return false;
  if (op.atomic == AtomicOp::kInc || op.atomic == AtomicOp::kDec) return false;
  if (reduce && IsFloat(*number) && (op.atomic != AtomicOp::kAdd || *number >= Number::kE4M3)) {
    return false;
  }
  if (!Address(in.operands[load ? 1 : 0], &op)) return false;
  if (reduce) {
    op.register_bytes = static_cast<std::uint8_t>(std::max<int>(4, op.bytes));
    if (!AtomicOperands(in.operands[1], &op)) return false;
  } else if (!DataElements(in.operands[load ? 0 : 1], load, &op)) {
    return false;
  }
  EmitMemory(in, op);
  return true;
}

}  // namespace allranks::node
