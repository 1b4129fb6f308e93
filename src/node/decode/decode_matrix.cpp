// ldmatrix, stmatrix, movmatrix, mma, wmma and wgmma: instruction → MatrixOp. See decode.h and
// matrix.h. What is not in the tables here (sparse and block-scaled products, tcgen05) is reported
// as unsupported.
#include <charconv>
#include <optional>

#include "node/alu/matrix.h"
#include "node/code/memory_words.h"
#include "node/decode/decode_internal.h"

namespace allranks::node {
namespace {

using Types = std::vector<MatrixType>;

struct Shape {
  std::uint16_t m = 0, n = 0, k = 0;
  bool operator==(const Shape&) const = default;
};

std::optional<MatrixType> TypeFromName(std::string_view word) {
  static constexpr std::pair<std::string_view, MatrixType> kNames[] = {
      {"f16", MatrixType::kF16},   {"bf16", MatrixType::kBF16}, {"tf32", MatrixType::kTF32},
      {"f32", MatrixType::kF32},   {"f64", MatrixType::kF64},   {"e4m3", MatrixType::kE4M3},
      {"e5m2", MatrixType::kE5M2}, {"e3m2", MatrixType::kE3M2}, {"e2m3", MatrixType::kE2M3},
      {"e2m1", MatrixType::kE2M1}, {"s8", MatrixType::kS8},     {"u8", MatrixType::kU8},
      {"s4", MatrixType::kS4},     {"u4", MatrixType::kU4},     {"b1", MatrixType::kB1},
      {"s32", MatrixType::kS32}};
  for (const auto& [name, type] : kNames) {
    if (name == word) return type;
  }
  return std::nullopt;
}

Types TypesOf(const ptx::Instruction& in) {
  Types types;
  for (const std::string_view word : in.modifiers) {
    if (const auto type = TypeFromName(word)) types.push_back(*type);
  }
  return types;
}

// m16n8k16
std::optional<Shape> ShapeOf(const ptx::Instruction& in) {
  for (const std::string_view word : in.modifiers) {
    const char *at = word.data(), *end = word.data() + word.size();
    std::uint16_t number[3] = {};
    bool ok = true;
    for (int i = 0; i < 3 && ok; ++i) {
      ok = at < end && *at == "mnk"[i];
      if (!ok) break;
      const auto [rest, error] = std::from_chars(at + 1, end, number[i]);
      ok = error == std::errc();
      at = rest;
    }
    if (ok && at == end) return Shape{number[0], number[1], number[2]};
  }
  return std::nullopt;
}

struct Products {
  MatrixType factor;  // one type of a family with the same shapes
  std::vector<Shape> shapes;
};

// One type stands for all that have its shapes.
MatrixType Family(MatrixType type) {
  switch (type) {
    case MatrixType::kU8:
      return MatrixType::kS8;
    case MatrixType::kU4:
      return MatrixType::kS4;
    case MatrixType::kE5M2:
    case MatrixType::kE3M2:
    case MatrixType::kE2M3:
    case MatrixType::kE2M1:
      return MatrixType::kE4M3;
    default:
      return type;
  }
}

// Types that only mma with .kind::f8f6f4 has.
bool IsNarrow(MatrixType type) {
  return type == MatrixType::kE3M2 || type == MatrixType::kE2M3 || type == MatrixType::kE2M1;
}

bool Listed(const std::vector<Products>& table, MatrixType factor, const Shape& shape) {
  for (const Products& row : table) {
    if (row.factor != Family(factor)) continue;
    return std::find(row.shapes.begin(), row.shapes.end(), shape) != row.shapes.end();
  }
  return false;
}

// PTX ISA, tables of mma.sync and wmma.mma (dense).
const std::vector<Products>& MmaProducts() {
  static const std::vector<Products> kTable = {
      {MatrixType::kF16, {{8, 8, 4}, {16, 8, 8}, {16, 8, 16}}},
      {MatrixType::kBF16, {{16, 8, 8}, {16, 8, 16}}},
      {MatrixType::kTF32, {{16, 8, 4}, {16, 8, 8}}},
      {MatrixType::kF64, {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}},
      {MatrixType::kE4M3, {{16, 8, 16}, {16, 8, 32}}},
      {MatrixType::kS8, {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}}},
      {MatrixType::kS4, {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}}},
      {MatrixType::kB1, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}}}};
  return kTable;
}
const std::vector<Products>& WmmaProducts() {
  static const std::vector<Shape> kWide = {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}};
  static const std::vector<Products> kTable = {
      {MatrixType::kF16, kWide},       {MatrixType::kBF16, kWide},
      {MatrixType::kS8, kWide},        {MatrixType::kTF32, {{16, 16, 8}}},
      {MatrixType::kF64, {{8, 8, 4}}}, {MatrixType::kS4, {{8, 8, 32}}},
      {MatrixType::kB1, {{8, 8, 128}}}};
  return kTable;
}

// Factors may differ only within a family; which accumulators go with them.
bool TypesFit(const MatrixOp& op) {
  if (Family(op.a) != Family(op.b)) return false;
  const auto accumulator = [&](MatrixType type) {
    switch (Family(op.a)) {
      case MatrixType::kF16:
      case MatrixType::kE4M3:
        return type == MatrixType::kF16 || type == MatrixType::kF32;
      case MatrixType::kBF16:
      case MatrixType::kTF32:
        return type == MatrixType::kF32;
      case MatrixType::kF64:
        return type == MatrixType::kF64;
      default:
        return type == MatrixType::kS32;
    }
  };
  return accumulator(op.c) && accumulator(op.d);
}

int WidthOf(MatrixType type) { return type == MatrixType::kF64 ? 8 : 4; }

// Registers that hold so many elements in a warp.
std::size_t Registers(MatrixType type, int elements) {
  return static_cast<std::size_t>(elements * matrix::BitsOf(type) / (kLanes * 8 * WidthOf(type)));
}

// Tensor cores of an H100 do so many multiply-adds per cycle and quarter of an SM (white paper:
// dense rates of the device over 132 SMs, four quarters and the boost clock). An instruction is
// charged in steps of two cycles.
std::uint8_t StepsOf(MatrixType factor, int products) {
  const auto rate = [&] {
    switch (Family(factor)) {
      case MatrixType::kTF32:
        return 256;
      case MatrixType::kF64:
        return 32;
      case MatrixType::kE4M3:
      case MatrixType::kS8:
      case MatrixType::kS4:
        return 1024;
      case MatrixType::kB1:
        return 8192;
      default:
        return 512;
    }
  };
  return static_cast<std::uint8_t>(std::clamp(products / (2 * rate()), 1, 255));
}

}  // namespace

// The registers of one operand: a vector of exactly `count`, or a lone register.
bool Decoder::Fragment(const Operand& operand, std::size_t count, int width, bool destination,
                       std::vector<Slot>* slots) {
  const Operand* elements = &operand;
  std::size_t size = 1;
  if (operand.kind == Operand::Kind::kVector) {
    elements = operand.elements.data();
    size = operand.elements.size();
  }
  if (size != count) return false;
  for (std::size_t i = 0; i < size; ++i) {
    Slot slot = kNoSlot;
    if (destination) {
      if (!Destination(elements[i], width, &slot)) return false;
    } else {
      slot = Place(elements[i], width, false);
      if (slot == kNoSlot) return false;
    }
    slots->push_back(slot);
  }
  return true;
}

void Decoder::EmitMatrix(const Instruction& in, MatrixOp op, std::uint8_t steps) {
  Op out = Start(in, OpKind::kMatrix);
  out.cycles = steps;
  out.aux = static_cast<std::uint32_t>(code_->matrices.size());
  code_->matrices.push_back(std::move(op));
  Emit(out);
}

bool Decoder::Matrix(const Instruction& in) {
  if (in.opcode == "wgmma" && (in.Has("fence") || in.Has("commit_group") || in.Has("wait_group"))) {
    // Products are done when they are issued: there is nothing to order or to wait for.
    Emit(Start(in, OpKind::kNop));
    return true;
  }
  if (!in.Has("sync") || !in.Has("aligned")) return false;
  for (const std::string_view word : in.modifiers) {
    if (word == "sp" || word.starts_with("sp::") || word == "block_scale" ||
        (word.starts_with("kind::") && word != "kind::f8f6f4")) {
      return false;
    }
  }
  if (in.opcode == "ldmatrix" || in.opcode == "stmatrix") return MatrixRows(in);
  if (in.opcode == "movmatrix") {
    MatrixOp op;
    op.kind = MatrixOpKind::kTranspose;
    if (in.operands.size() != 2 || !in.Has("m8n8") || !in.Has("b16") ||
        !Fragment(in.operands[0], 1, 4, true, &op.d_slots) ||
        !Fragment(in.operands[1], 1, 4, false, &op.a_slots)) {
      return false;
    }
    EmitMatrix(in, std::move(op), 2);
    return true;
  }
  if (in.opcode == "wmma" && !in.Has("mma")) return MatrixFragment(in);
  if (in.opcode == "wgmma") return in.Has("mma_async") && MatrixGroup(in);
  return MatrixProduct(in);
}

// ldmatrix d, [p]; stmatrix [p], d
bool Decoder::MatrixRows(const Instruction& in) {
  const bool load = in.opcode == "ldmatrix";
  if (in.operands.size() != 2 || !in.Has("m8n8") || !in.Has("b16")) return false;
  const std::size_t count = in.Has("x1") ? 1 : in.Has("x2") ? 2 : in.Has("x4") ? 4 : 0;
  if (count == 0) return false;
  MatrixOp op;
  op.kind = load ? MatrixOpKind::kLoadRows : MatrixOpKind::kStoreRows;
  op.transposed = in.Has("trans");
  op.memory.kind = load ? MemoryOpKind::kLoad : MemoryOpKind::kStore;
  op.memory.space = ReadMemoryWords(in).space;
  if (op.memory.space != Space::kNone && op.memory.space != Space::kShared) return false;
  op.memory.count = 4;
  for (Slot word = 0; word < 4; ++word) op.memory.data[word] = word;
  if (!Address(in.operands[load ? 1 : 0], &op.memory) ||
      !Fragment(in.operands[load ? 0 : 1], count, 4, load, load ? &op.d_slots : &op.a_slots)) {
    return false;
  }
  EmitMatrix(in, std::move(op), count == 4 ? 2 : 1);
  return true;
}

// mma d, a, b, c; wmma.mma the same
bool Decoder::MatrixProduct(const Instruction& in) {
  const bool wmma = in.opcode == "wmma";
  const auto shape = ShapeOf(in);
  Types types = TypesOf(in);
  // wmma.mma of f16 names only its accumulators.
  if (wmma && types.size() == 2) types = {types[0], MatrixType::kF16, MatrixType::kF16, types[1]};
  if (!shape || types.size() != 4 || in.operands.size() != 4) return false;
  MatrixOp op;
  op.kind = MatrixOpKind::kMultiply;
  op.m = shape->m;
  op.n = shape->n;
  op.k = shape->k;
  op.d = types[0];
  op.a = types[1];
  op.b = types[2];
  op.c = types[3];
  if (!Listed(wmma ? WmmaProducts() : MmaProducts(), op.a, *shape) || !TypesFit(op)) return false;
  const bool narrow = IsNarrow(op.a) || IsNarrow(op.b);
  if (in.Has("kind::f8f6f4") ? Family(op.a) != MatrixType::kE4M3 || op.k != 32 : narrow) {
    return false;
  }
  op.quads = op.a == MatrixType::kF16 && op.k == 4;
  std::vector<std::string_view> layouts;
  for (const std::string_view word : in.modifiers) {
    if (word == "row" || word == "col") layouts.push_back(word);
  }
  if (layouts.size() != 2) return false;
  op.a_column = layouts[0] == "col";
  op.b_row = layouts[1] == "row";
  // Registers of a wmma fragment do not depend on how it was stored.
  if (!wmma && !op.quads && (op.a_column || op.b_row)) return false;
  op.saturate = in.Has("satfinite");
  op.and_popc = in.Has("and");
  if (op.a == MatrixType::kB1 && !in.Has("popc")) return false;
  op.rounding = in.Has("rz") ? 1 : in.Has("rm") ? 2 : in.Has("rp") ? 3 : 0;
  std::size_t as = Registers(op.a, op.m * op.k), bs = Registers(op.b, op.n * op.k);
  int accumulators = op.m * op.n;
  if (wmma && op.a == MatrixType::kF16) as = bs = 8;  // with copies: matrix.h
  if (op.quads) {
    as = bs = 2;
    accumulators = 4 * 8 * 8;
  }
  if (!Fragment(in.operands[0], Registers(op.d, accumulators), WidthOf(op.d), true, &op.d_slots) ||
      !Fragment(in.operands[1], as, WidthOf(op.a), false, &op.a_slots) ||
      !Fragment(in.operands[2], bs, WidthOf(op.b), false, &op.b_slots) ||
      !Fragment(in.operands[3], Registers(op.c, accumulators), WidthOf(op.c), false, &op.c_slots)) {
    return false;
  }
  const std::uint8_t steps = StepsOf(op.a, accumulators * op.k);
  EmitMatrix(in, std::move(op), steps);
  return true;
}

// wmma.load.{a,b,c} d, [p], stride; wmma.store.d [p], d, stride
bool Decoder::MatrixFragment(const Instruction& in) {
  const bool load = in.Has("load");
  const auto shape = ShapeOf(in);
  const Types types = TypesOf(in);
  if ((!load && !in.Has("store")) || !shape || types.size() != 1 || in.operands.size() < 2 ||
      in.operands.size() > 3 || in.Has("row") == in.Has("col")) {
    return false;
  }
  MatrixOp op;
  op.kind = load ? MatrixOpKind::kLoadFragment : MatrixOpKind::kStoreFragment;
  op.m = shape->m;
  op.n = shape->n;
  op.k = shape->k;
  op.a = op.b = op.c = op.d = types[0];
  op.column_major = in.Has("col");
  using Fragment = MatrixOp::Fragment;
  op.fragment = !load || in.Has("c") ? Fragment::kC : in.Has("a") ? Fragment::kA : Fragment::kB;
  std::size_t count = 0;
  int rows = op.m, columns = op.n;
  if (op.fragment == Fragment::kC) {
    // Any shape whose accumulators may have this type.
    bool listed = false;
    for (const Products& row : WmmaProducts()) {
      MatrixOp product = op;
      product.a = product.b = row.factor;
      listed |= TypesFit(product) && Listed(WmmaProducts(), row.factor, *shape);
    }
    if (!listed) return false;
    count = Registers(op.c, op.m * op.n);
  } else {
    if (!Listed(WmmaProducts(), types[0], *shape)) return false;
    const bool is_a = op.fragment == Fragment::kA;
    // Elements smaller than a byte are contiguous along k.
    if (matrix::BitsOf(types[0]) < 8 && op.column_major == is_a) return false;
    rows = is_a ? op.m : op.k;
    columns = is_a ? op.k : op.n;
    count = types[0] == MatrixType::kF16 ? 8 : Registers(types[0], rows * columns);
  }
  op.packed_stride = static_cast<std::uint16_t>(op.column_major ? rows : columns);
  op.memory.kind = load ? MemoryOpKind::kLoad : MemoryOpKind::kStore;
  op.memory.space = ReadMemoryWords(in).space;
  if (op.memory.space != Space::kNone && op.memory.space != Space::kShared &&
      op.memory.space != Space::kGlobal) {
    return false;
  }
  if (!Address(in.operands[load ? 1 : 0], &op.memory) ||
      !this->Fragment(in.operands[load ? 0 : 1], count, WidthOf(types[0]), load,
                      load ? &op.d_slots : &op.a_slots)) {
    return false;
  }
  if (in.operands.size() == 3) {
    op.stride = Place(in.operands[2], 4, false);
    if (op.stride == kNoSlot) return false;
  }
  EmitMatrix(in, std::move(op), static_cast<std::uint8_t>(std::max<std::size_t>(1, count / 2)));
  return true;
}

// wgmma.mma_async d, a or descriptor, descriptor, scale-d {, scale-a, scale-b {, {trans-a,}
// trans-b}}
bool Decoder::MatrixGroup(const Instruction& in) {
  const auto shape = ShapeOf(in);
  const Types types = TypesOf(in);
  const auto& o = in.operands;
  if (!shape || types.size() != 3 || o.size() < 4) return false;
  MatrixOp op;
  op.kind = MatrixOpKind::kMultiplyGroup;
  op.m = shape->m;
  op.n = shape->n;
  op.k = shape->k;
  op.c = op.d = types[0];
  op.a = types[1];
  op.b = types[2];
  op.saturate = in.Has("satfinite");
  op.and_popc = true;
  const int bits = matrix::BitsOf(op.a);
  // A row of a factor is always 32 bytes; there is no wgmma of f64 and 4-bit integers.
  if (!TypesFit(op) || op.m != 64 || op.n < 8 || op.n > 256 || op.n % 8 != 0 ||
      op.k * bits != 256 || bits == 64 || bits == 4 || IsNarrow(op.a) || IsNarrow(op.b)) {
    return false;
  }
  constexpr int kRows = 16;  // of one warp
  const bool from_registers = o[1].kind == Operand::Kind::kVector;
  if (!Fragment(o[0], Registers(op.d, kRows * op.n), 4, true, &op.d_slots)) return false;
  // A destination that nobody reads is still added to.
  for (const Slot slot : op.d_slots) {
    if (slot == kNoSlot) return false;
  }
  if (from_registers) {
    if (!Fragment(o[1], Registers(op.a, kRows * op.k), 4, false, &op.a_slots)) return false;
  } else {
    op.a_descriptor = Place(o[1], 8, false);
    if (op.a_descriptor == kNoSlot) return false;
  }
  op.b_descriptor = Place(o[2], 8, false);
  if (op.b_descriptor == kNoSlot) return false;
  if (o[3].kind == Operand::Kind::kInt) {
    op.accumulate = o[3].imm != 0;
  } else {
    op.scale_d = Predicate(o[3]);
    op.scale_d_negated = o[3].negated;
    if (op.scale_d == kNoSlot) return false;
  }
  std::vector<std::int64_t> flags;
  for (std::size_t i = 4; i < o.size(); ++i) {
    if (o[i].kind != Operand::Kind::kInt) return false;
    flags.push_back(static_cast<std::int64_t>(o[i].imm));
  }
  const std::size_t transposes = bits != 16 ? 0 : from_registers ? 1 : 2;
  const std::size_t scales = matrix::IsFloat(op.a) ? 2 : 0;
  if (flags.size() != scales + transposes) return false;
  for (std::size_t i = 0; i < scales; ++i) {
    if (flags[i] != 1 && flags[i] != -1) return false;
    (i == 0 ? op.a_negated : op.b_negated) = flags[i] == -1;
  }
  if (transposes == 2) op.a_transposed = flags[2] != 0;
  if (transposes != 0) op.b_transposed = flags.back() != 0;
  const std::uint8_t steps = StepsOf(op.a, kRows * op.n * op.k);
  EmitMatrix(in, std::move(op), steps);
  return true;
}

}  // namespace allranks::node
