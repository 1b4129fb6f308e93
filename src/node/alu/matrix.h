// What matrix instructions do to registers: who holds which element, and the products. Pure
// functions; decode_matrix.cpp makes the MatrixOp, engine_matrix.h calls these and does the memory
// accesses.
//
// One layout serves mma.sync, wgmma and wmma. It is that of the PTX ISA, "Matrix Fragments for
// mma.m16n8k*" and its neighbours, whose figures all follow one rule. With g = lane / 4 and
// t = lane % 4, and E elements in a register (of 4 bytes, or 8 for f64):
//
//   A (M x K)  register i: row 8 * (i % (M/8)) + g,  columns (4 * (i / (M/8)) + t) * E + e
//   B (K x N)  register i: column 8 * (i / (K/4E)) + g,  rows (4 * (i % (K/4E)) + t) * E + e
//   C, D       elements 2j, 2j+1: row 8 * (j % (M/8)) + g,  columns 8 * (j / (M/8)) + 2t + {0, 1}
//
// The one exception is mma.m8n8k4 of f16 (`quads`). Which lane holds what in a wmma fragment is
// left open by the ISA; it is the rule above here, extended to M and N of 8, 16 and 32. Fragments
// of f16 factors have more registers than elements need: those are copies of the first ones, and
// wmma.mma reads the first ones. Code that changes elements one by one therefore works as long as
// it treats the elements of a fragment alike, which is all the ISA allows.
//
// Sums. Products of 16-bit floats, tf32 and 8-bit floats are exact in f32. They are added to the
// accumulator one after the other, by ascending k, each sum rounded to the nearest f32; an f16
// result is rounded once more at the end. (Hardware adds several products at once and cuts off low
// bits; the ISA leaves order and rounding open, so only what is exact can be compared.) f64 is a
// chain of fused multiply-adds by ascending k. NaN results are the canonical one. tf32 factors are
// cut to 10 bits of mantissa.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node/code/code.h"

namespace allranks::node::matrix {

int BitsOf(MatrixType type);
inline bool IsFloat(MatrixType type) { return type != MatrixType::kNone && type < MatrixType::kS8; }

// Where one lane's element stands. `outer` is the row of A, C and D and the column of B; `inner`
// the other dimension.
struct Place {
  int outer = 0, inner = 0;
};
// Element `e` of register `i` of a wmma fragment. `i` may be one of the copies.
Place PlaceOf(const MatrixOp& op, int i, int lane, int e);

inline constexpr int kRowBytes = 128;  // of the widest row of a factor: 16 f64
inline constexpr int kMaxColumns = 256;

// A factor as rows of packed elements, contiguous in k: row i of A, or column i of B.
struct Rows {
  alignas(64) std::byte bytes[kMaxColumns * 32];
  int pitch = 32;
  std::byte* at(int row) { return bytes + row * pitch; }
  const std::byte* at(int row) const { return bytes + row * pitch; }
};

// Collects a factor from the registers of a warp.
void GatherRows(const std::vector<Slot>& slots, int outer, int inner, MatrixType type, bool is_b,
                const std::byte* registers, const std::byte* constants, Rows* rows);

// D = A * B + C for `m` rows (8, 16 or 32: those of one warp). Writes the lanes in `mask`.
// `accumulate` false: without C. wgmma's C are its D registers.
void Multiply(const MatrixOp& op, int m, const Rows& a, const Rows& b, bool accumulate,
              std::byte* registers, const std::byte* constants, std::uint32_t mask);

// mma and wmma.mma as a whole.
void Multiply(const MatrixOp& op, std::byte* registers, const std::byte* constants,
              std::uint32_t mask);

// movmatrix: the transpose of an 8x8 matrix of 16-bit elements, one row per four lanes.
void Transpose(const MatrixOp& op, std::byte* registers, const std::byte* constants,
               std::uint32_t mask);

// ldmatrix: `rows` are the 16 bytes at the address of each lane, as four words: word w of lane l
// is rows[w][l]. stmatrix: the other way.
void RowsToRegisters(const MatrixOp& op, const std::uint32_t (*rows)[kLanes], std::byte* registers,
                     std::uint32_t mask);
void RegistersToRows(const MatrixOp& op, const std::byte* registers, const std::byte* constants,
                     std::uint32_t (*rows)[kLanes]);

// A matrix descriptor of wgmma (PTX ISA, "Matrix Descriptor Format"). Addresses are shared ones.
struct Descriptor {
  std::uint32_t start = 0, leading = 0, stride = 0;  // bytes
  std::uint32_t base_offset = 0;
  std::uint32_t swizzle = 0;  // 16-byte chunks that are exchanged: 1 (none), 2, 4, 8
};
Descriptor DecodeDescriptor(std::uint64_t bits);
// Address of a chunk of 16 bytes. Without `transposed`: of row `outer`, the chunk-th along k.
// With it: elements 8 * chunk ... 8 * chunk + 7 of the outer dimension, at k = `outer`.
std::uint32_t ChunkAddress(const Descriptor& descriptor, bool transposed, int outer, int chunk);

}  // namespace allranks::node::matrix
