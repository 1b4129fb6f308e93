// Which lane and register holds which element of a matrix, in registers and in shared memory; see
// matrix.h.
#include <cstring>

#include "node/alu/matrix.h"
#include "node/code/lanes.h"

namespace allranks::node::matrix {

int BitsOf(MatrixType type) {
  switch (type) {
    case MatrixType::kNone:
      return 0;
    case MatrixType::kF16:
    case MatrixType::kBF16:
      return 16;
    case MatrixType::kTF32:
    case MatrixType::kF32:
    case MatrixType::kS32:
      return 32;
    case MatrixType::kF64:
      return 64;
    case MatrixType::kE4M3:
    case MatrixType::kE5M2:
    case MatrixType::kE3M2:
    case MatrixType::kE2M3:
    case MatrixType::kE2M1:
    case MatrixType::kS8:
    case MatrixType::kU8:
      return 8;
    case MatrixType::kS4:
    case MatrixType::kU4:
      return 4;
    case MatrixType::kB1:
      return 1;
  }
  return 0;
}

Place PlaceOf(const MatrixOp& op, int i, int lane, int e) {
  const int g = lane / 4, t = lane % 4;
  if (op.fragment == MatrixOp::Fragment::kC) {
    const int row_blocks = op.m / 8;
    const int element = BitsOf(op.c) == 16 ? 2 * i + e : i;
    const int block = element / 2;
    return {8 * (block % row_blocks) + g, 8 * (block / row_blocks) + 2 * t + element % 2};
  }
  const bool is_a = op.fragment == MatrixOp::Fragment::kA;
  const MatrixType type = is_a ? op.a : op.b;
  const int per_register = type == MatrixType::kF64 ? 1 : 32 / BitsOf(type);
  const int outer_blocks = (is_a ? op.m : op.n) / 8;
  const int inner_blocks = op.k / (4 * per_register);
  i %= outer_blocks * inner_blocks;
  const int outer = is_a ? i % outer_blocks : i / inner_blocks;
  const int inner = is_a ? i / outer_blocks : i % inner_blocks;
  return {8 * outer + g, (4 * inner + t) * per_register + e};
}

// The four lanes of a group hold 16 (f64: 32) consecutive bytes of a row.
void GatherRows(const std::vector<Slot>& slots, int outer, int inner, MatrixType type, bool is_b,
                const std::byte* registers, const std::byte* constants, Rows* rows) {
  const int unit = type == MatrixType::kF64 ? 8 : 4;
  rows->pitch = inner * BitsOf(type) / 8;
  const int outer_blocks = outer / 8, inner_blocks = rows->pitch / (4 * unit);
  for (int i = 0; i < outer_blocks * inner_blocks; ++i) {
    const int block = is_b ? i / inner_blocks : i % outer_blocks;
    const int along = is_b ? i % inner_blocks : i / outer_blocks;
    const std::byte* from = SlotAt(registers, constants, slots[static_cast<std::size_t>(i)]);
    std::byte* to = rows->at(8 * block) + along * 4 * unit;
    for (int g = 0; g < 8; ++g) {
      std::memcpy(to + g * rows->pitch, from + g * 4 * unit, 4 * static_cast<std::size_t>(unit));
    }
  }
}

void Transpose(const MatrixOp& op, std::byte* registers, const std::byte* constants,
               std::uint32_t mask) {
  std::uint16_t matrix[8][8];  // [row][column]: lane 4r + c/2 holds columns c, c+1 of row r
  std::memcpy(matrix, SlotAt(registers, constants, op.a_slots[0]), sizeof(matrix));
  if (op.d_slots[0] == kNoSlot) return;
  std::byte* to = registers + op.d_slots[0] * kSlotBytes;
  ForLanes(mask, [&](int l) {
    const int g = l / 4, t = l % 4;
    const std::uint32_t word = matrix[2 * t][g] | std::uint32_t{matrix[2 * t + 1][g]} << 16;
    std::memcpy(to + l * 4, &word, 4);
  });
}

// PTX ISA, ldmatrix: lane 8j + r has the address of row r of matrix j, which goes to register j.
// Lane 4r + t gets the t-th word of row r; with .trans elements 2t and 2t+1 of column r.
void RowsToRegisters(const MatrixOp& op, const std::uint32_t (*rows)[kLanes], std::byte* registers,
                     std::uint32_t mask) {
  for (std::size_t j = 0; j < op.d_slots.size(); ++j) {
    if (op.d_slots[j] == kNoSlot) continue;
    std::byte* to = registers + op.d_slots[j] * kSlotBytes;
    const auto first = static_cast<int>(j) * 8;
    ForLanes(mask, [&](int l) {
      const int g = l / 4, t = l % 4;
      std::uint32_t word = rows[t][first + g];
      if (op.transposed) {
        const std::uint32_t low = rows[g / 2][first + 2 * t] >> (g % 2 * 16);
        const std::uint32_t high = rows[g / 2][first + 2 * t + 1] >> (g % 2 * 16);
        word = (low & 0xffff) | high << 16;
      }
      std::memcpy(to + l * 4, &word, 4);
    });
  }
}

void RegistersToRows(const MatrixOp& op, const std::byte* registers, const std::byte* constants,
                     std::uint32_t (*rows)[kLanes]) {
  for (std::size_t j = 0; j < op.a_slots.size(); ++j) {
    std::uint32_t words[kLanes];
    std::memcpy(words, SlotAt(registers, constants, op.a_slots[j]), sizeof(words));
    const auto first = static_cast<int>(j) * 8;
    for (int r = 0; r < 8; ++r) {
      for (int t = 0; t < 4; ++t) {
        std::uint32_t word = words[4 * r + t];
        if (op.transposed) {
          // Elements 2t and 2t+1 of row r are element r of columns 2t and 2t+1.
          const std::uint32_t low = words[4 * (2 * t) + r / 2] >> (r % 2 * 16);
          const std::uint32_t high = words[4 * (2 * t + 1) + r / 2] >> (r % 2 * 16);
          word = (low & 0xffff) | high << 16;
        }
        rows[t][first + r] = word;
      }
    }
  }
}

Descriptor DecodeDescriptor(std::uint64_t bits) {
  const auto field = [&](int at) { return static_cast<std::uint32_t>(bits >> at & 0x3fff) << 4; };
  static constexpr std::uint32_t kChunks[] = {1, 8, 4, 2};  // none, 128, 64 and 32 bytes
  return {field(0), field(16), field(32), static_cast<std::uint32_t>(bits >> 49 & 7),
          kChunks[bits >> 62]};
}

// PTX ISA, "Shared Memory Matrix Layout" of wgmma. The layout is made of atoms of 8 rows of
// `swizzle` chunks. K-major: rows are rows of the matrix; `stride` leads to the next 8. The two
// chunks of one instruction are neighbours, or `leading` apart where an atom is one chunk wide.
// M- or N-major: rows are values of k; `leading` leads to the next atom along the outer dimension
// and `stride` to the next 8 values of k, and without swizzling the other way round.
// Swizzling exchanges chunks by the number of the 128-byte line, counted from where the pattern
// begins: lines of the address are ahead of it by the base offset.
std::uint32_t ChunkAddress(const Descriptor& d, bool transposed, int outer, int chunk) {
  const auto row = static_cast<std::uint32_t>(outer), column = static_cast<std::uint32_t>(chunk);
  const std::uint32_t width = d.swizzle;
  std::uint32_t at = d.start + row % 8 * width * 16;
  if (!transposed) {
    at += row / 8 * d.stride + column * (width == 1 ? d.leading : 16);
  } else if (width == 1) {
    at += row / 8 * d.leading + column * d.stride;
  } else {
    at += row / 8 * d.stride + column / width * d.leading + column % width * 16;
  }
  return at ^ (((at >> 7) - d.base_offset) & (width - 1)) << 4;
}

}  // namespace allranks::node::matrix
