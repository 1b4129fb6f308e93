// Bulk and tensor copies, st.async, red.async and st.bulk: instruction → AsyncOp. See decode.h.
#include <optional>
#include <unordered_map>
#include <utility>

#include "node/code/memory_words.h"
#include "node/decode/decode_internal.h"

namespace allranks::node {
namespace {

using ptx::Instruction;
using ptx::Type;

constexpr std::uint64_t kMaxPending = 0x7fffffff;  // of wait_group

std::optional<AtomicOp> ReductionOf(const Instruction& in) {
  static const std::unordered_map<std::string_view, AtomicOp> kOps = {
      {"add", AtomicOp::kAdd}, {"min", AtomicOp::kMin}, {"max", AtomicOp::kMax},
      {"inc", AtomicOp::kInc}, {"dec", AtomicOp::kDec}, {"and", AtomicOp::kAnd},
      {"or", AtomicOp::kOr},   {"xor", AtomicOp::kXor}};
  for (const std::string_view word : in.modifiers) {
    if (const auto it = kOps.find(word); it != kOps.end()) return it->second;
  }
  return std::nullopt;
}

// The combinations that PTX has; others would be undefined on these numbers.
bool Reduces(AtomicOp op, Number number) {
  const bool is_float = number >= Number::kF16;
  switch (op) {
    case AtomicOp::kAdd:
      return true;
    case AtomicOp::kMin:
    case AtomicOp::kMax:
      return !is_float || number == Number::kF16 || number == Number::kBF16;
    case AtomicOp::kInc:
    case AtomicOp::kDec:
      return number == Number::kU32;
    default:
      return !is_float;
  }
}

}  // namespace

bool Decoder::CopyBulk(const Instruction& in, AsyncOp* op) {
  const auto& operands = in.operands;
  if (in.Has("commit_group")) {
    op->kind = AsyncOpKind::kBulkCommit;
    return operands.empty();
  }
  if (in.Has("wait_group")) {
    op->kind = AsyncOpKind::kBulkWait;
    op->read = in.Has("read");
    if (operands.size() != 1 || operands[0].kind != Operand::Kind::kInt) return false;
    op->pending = static_cast<std::uint32_t>(std::min(operands[0].imm, kMaxPending));
    return true;
  }
  if (in.opcode != "cp" || operands.size() < 3) return false;
  op->kind = AsyncOpKind::kBulkCopy;
  op->bulk_group = in.Has("bulk_group");
  // Destination and source are named in this order.
  std::vector<Space> spaces;
  for (const std::string_view word : in.modifiers) {
    if (word == "global") spaces.push_back(Space::kGlobal);
    if (word == "shared::cta" || word == "shared::cluster") spaces.push_back(Space::kShared);
    if (word == "ignore_oob" || word == "cp_mask") return false;
  }
  if (spaces.size() != 2) return false;
  const bool to_global = spaces[0] == Space::kGlobal;
  if (to_global == (spaces[1] == Space::kGlobal) && to_global) return false;
  if (to_global != op->bulk_group) return false;
  if (in.Has("reduce")) {
    const auto reduction = ReductionOf(in);
    const auto number = NumberOf(in.TypeFromEnd());
    if (!reduction || !number || !Reduces(*reduction, *number) || spaces[1] == Space::kGlobal)
      return false;
    op->reduce = *reduction;
    op->number = *number;
  }
  if (!AsyncOperand(operands[0], spaces[0], &op->dst) ||
      !AsyncOperand(operands[1], spaces[1], &op->src)) {
    return false;
  }
  op->count = Place(operands[2], 4, false);
  if (op->count == kNoSlot) return false;
  std::size_t next = 3;
  if (!op->bulk_group) {
    if (operands.size() < 4 || !AsyncOperand(operands[3], Space::kShared, &op->bar)) return false;
    next = 4;
    if (in.Has("multicast::cluster")) {
      if (operands.size() < 5) return false;
      op->multicast = Place(operands[4], 4, false);
      if (op->multicast == kNoSlot) return false;
      next = 5;
    }
  }
  return operands.size() == next + (in.Has("L2::cache_hint") ? 1 : 0);
}

bool Decoder::CopyTensor(const Instruction& in, AsyncOp* op) {
  const auto& operands = in.operands;
  if (in.opcode != "cp" || operands.size() < 2) return false;
  for (const std::string_view word : in.modifiers) {
    if (word.size() == 2 && word[1] == 'd' && word[0] >= '1' && word[0] <= '5')
      op->dimensions = static_cast<std::uint8_t>(word[0] - '0');
    // Only tiles.
    if (word.starts_with("im2col") || word.starts_with("tile::") || word.starts_with("cta_group"))
      return false;
  }
  if (op->dimensions == 0) return false;
  op->bulk_group = in.Has("bulk_group");
  op->kind = op->bulk_group ? AsyncOpKind::kTensorStore : AsyncOpKind::kTensorLoad;
  if (in.Has("reduce")) {
    const auto reduction = ReductionOf(in);
    if (!reduction || !op->bulk_group) return false;
    op->reduce = *reduction;
  }
  const Operand& map = operands[op->bulk_group ? 0 : 1];
  const Operand& shared = operands[op->bulk_group ? 1 : 0];
  if (map.kind != Operand::Kind::kAddress || map.elements.size() != 2 ||
      map.elements[1].kind != Operand::Kind::kVector ||
      map.elements[1].elements.size() != op->dimensions) {
    return false;
  }
  for (std::size_t i = 0; i < op->dimensions; ++i) {
    op->coordinates[i] = Place(map.elements[1].elements[i], 4, false);
    if (op->coordinates[i] == kNoSlot) return false;
  }
  if (!AsyncOperand(map, Space::kNone, op->bulk_group ? &op->dst : &op->src) ||
      !AsyncOperand(shared, Space::kShared, op->bulk_group ? &op->src : &op->dst)) {
    return false;
  }
  std::size_t next = 2;
  if (!op->bulk_group) {
    if (operands.size() < 3 || !AsyncOperand(operands[2], Space::kShared, &op->bar)) return false;
    next = 3;
    if (in.Has("multicast::cluster")) {
      if (operands.size() < 4) return false;
      op->multicast = Place(operands[3], 4, false);
      if (op->multicast == kNoSlot) return false;
      next = 4;
    }
  }
  return operands.size() == next + (in.Has("L2::cache_hint") ? 1 : 0);
}

bool Decoder::StoreAsync(const Instruction& in, AsyncOp* op) {
  const auto& operands = in.operands;
  const bool reduce = in.opcode == "red";
  // To global memory (st.async.mmio, sm_100) is another operation.
  if (operands.size() != 3 || !in.Has("shared::cluster")) return false;
  op->kind = AsyncOpKind::kStore;
  const Type type = in.TypeFromEnd();
  op->bytes = static_cast<std::uint8_t>(ptx::SizeOf(type));
  if (op->bytes != 4 && op->bytes != 8) return false;
  if (!AsyncOperand(operands[0], Space::kShared, &op->dst) ||
      !AsyncOperand(operands[2], Space::kShared, &op->bar)) {
    return false;
  }
  const bool vector = operands[1].kind == Operand::Kind::kVector;
  if (vector != (in.Has("v2") || in.Has("v4"))) return false;
  if (reduce) {
    const auto reduction = ReductionOf(in);
    const auto number = NumberOf(type);
    if (vector || !reduction || !number || !Reduces(*reduction, *number)) return false;
    op->reduce = *reduction;
    op->number = *number;
  }
  std::vector<Operand> elements = vector ? operands[1].elements : std::vector{operands[1]};
  if (elements.empty() || elements.size() > 4) return false;
  op->elements = static_cast<std::uint8_t>(elements.size());
  const bool is_float = type == Type::kF32 || type == Type::kF64;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    op->data[i] = Place(elements[i], op->bytes, is_float);
    if (op->data[i] == kNoSlot) return false;
  }
  return true;
}

// PTX ISA 9.0 also has a size of 32 bits, which ptxas 13.0 does not take yet.
bool Decoder::StoreBulk(const Instruction& in, AsyncOp* op) {
  const auto& operands = in.operands;
  if (in.opcode != "st" || in.modifiers[0] != "bulk" || operands.size() != 3) return false;
  bool shared = false, weak = false;
  for (std::size_t i = 1; i < in.modifiers.size(); ++i) {
    bool* const seen = in.modifiers[i] == "shared::cta" ? &shared
                       : in.modifiers[i] == "weak"      ? &weak
                                                        : nullptr;
    if (seen == nullptr || std::exchange(*seen, true)) return false;
  }
  const Operand& size = operands[1];
  const Operand& value = operands[2];
  if (value.kind != Operand::Kind::kInt || value.imm != 0) return false;
  if (size.kind != Operand::Kind::kReg &&
      (size.kind != Operand::Kind::kInt || size.imm > kMaxFill || size.imm % kFillUnit != 0)) {
    return false;
  }
  op->kind = AsyncOpKind::kFill;
  op->count = Place(size, 8, false);
  return op->count != kNoSlot &&
         AsyncOperand(operands[0], shared ? Space::kShared : Space::kNone, &op->dst);
}

}  // namespace allranks::node
