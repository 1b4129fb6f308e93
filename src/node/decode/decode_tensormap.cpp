// tensormap.replace: one field of a tensor map in memory. The layout of maps is ours
// (base/tensor_map.h), so a field is some bytes at an offset and replacing it is a weak store.
#include <cstddef>

#include "base/tensor_map.h"
#include "node/decode/decode_internal.h"

namespace allranks::node {

// tensormap.replace.tile.field{.space}.b1024.type [map], {ordinal,} value. Not here: rank and
// global_dim, which the map holds otherwise than the instruction gives them.
bool Decoder::TensormapReplace(const Instruction& in) {
  const auto& words = in.modifiers;
  const bool has_space = words.size() == 6;
  if (words.size() < 5 || words.size() > 6 || words[0] != "replace" || words[1] != "tile") {
    return false;
  }
  const std::string_view field = words[2], type = words.back();
  if (words[words.size() - 2] != "b1024" || (type != "b32" && type != "b64")) return false;
  if (has_space && words[3] != "global" && words[3] != "shared::cta") return false;

  const bool has_ordinal =
      field == "box_dim" || field == "global_stride" || field == "element_stride";
  if (in.operands.size() != (has_ordinal ? 3u : 2u)) return false;
  std::uint64_t ordinal = 0;
  if (has_ordinal) {
    if (in.operands[1].kind != Operand::Kind::kInt) return false;
    ordinal = in.operands[1].imm;
    if (ordinal >= (field == "global_stride" ? 4u : 5u)) return false;
  }
  Operand value = in.operands.back();
  const auto literal_below = [&](std::uint64_t end) {
    return value.kind == Operand::Kind::kInt && value.imm < end;
  };
  std::size_t offset = 0;
  int bytes = 1;
  if (field == "global_address") {
    offset = offsetof(TensorMap, address);
    bytes = 8;
  } else if (field == "global_stride") {
    offset = offsetof(TensorMap, stride) + 8 * ordinal;
    bytes = 8;
  } else if (field == "box_dim") {
    offset = offsetof(TensorMap, box) + 2 * ordinal;
    bytes = 2;
  } else if (field == "element_stride") {
    offset = offsetof(TensorMap, step) + ordinal;
  } else if (field == "elemtype") {
    // PTX counts f32.ftz before f64.
    using T = TensorMap::Type;
    static constexpr T kTypes[] = {T::kU8,   T::kU16,  T::kU32,    T::kS32,    T::kU64,
                                   T::kS64,  T::kF16,  T::kF32,    T::kF32Ftz, T::kF64,
                                   T::kBF16, T::kTF32, T::kTF32Ftz};
    if (!literal_below(std::size(kTypes))) return false;
    value.imm = static_cast<std::uint64_t>(kTypes[value.imm]);
    offset = offsetof(TensorMap, type);
  } else if (field == "interleave_layout" && literal_below(3)) {
    offset = offsetof(TensorMap, interleave);
  } else if (field == "swizzle_mode" && literal_below(4)) {
    offset = offsetof(TensorMap, swizzle);
  } else if (field == "fill_mode" && literal_below(2)) {
    offset = offsetof(TensorMap, fill_nan);
  } else {
    return false;
  }
  if ((bytes == 8) != (type == "b64")) return false;

  MemoryOp op;
  op.kind = MemoryOpKind::kStore;
  op.space = !has_space ? Space::kNone : words[3] == "global" ? Space::kGlobal : Space::kShared;
  op.type = bytes == 8 ? Type::kB64 : bytes == 2 ? Type::kB16 : Type::kB8;
  op.bytes = static_cast<std::uint8_t>(bytes);
  if (!Address(in.operands[0], &op) || !DataElements(value, false, &op)) return false;
  op.offset += static_cast<std::int64_t>(offset);
  EmitMemory(in, op);
  return true;
}

}  // namespace allranks::node
