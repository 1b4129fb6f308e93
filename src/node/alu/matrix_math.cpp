// Products of matrices; see matrix.h. Columns are taken in blocks of eight, so that the inner loops
// are over eight neighbouring accumulators, which compilers vectorise. No sum is contracted or
// reordered: results are the same on every machine.
#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>

#include "node/alu/matrix.h"
#include "node/code/lanes.h"

namespace allranks::node::matrix {
namespace {

constexpr int kColumns = 8;  // of a block
constexpr int kMaxRows = 32;
constexpr std::uint32_t kNanF32 = 0x7fffffff;
constexpr std::uint16_t kNanF16 = 0x7fff;
constexpr std::uint64_t kNanF64 = 0xfff8000000000000;

// No step goes through a subnormal f32: those cost processors a hundred cycles each.
inline float FromHalf(std::uint32_t h) {
  const std::uint32_t magnitude = h & 0x7fff;
  const float small = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f;
  const std::uint32_t exponent = magnitude < 0x7c00 ? 112u << 23 : 224u << 23;
  std::uint32_t bits = (magnitude << 13) + exponent;
  bits = magnitude < 0x400 ? std::bit_cast<std::uint32_t>(small) : bits;
  return std::bit_cast<float>(bits | (h & 0x8000) << 16);
}

std::uint16_t ToHalf(float f) {
  const auto b = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = b >> 16 & 0x8000, magnitude = b & 0x7fffffff;
  if (magnitude > 0x7f800000) return kNanF16;
  if (magnitude >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    // One unit of 0.5 is one unit of a subnormal half: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  }
  const std::uint32_t normal = magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1);
  return static_cast<std::uint16_t>(sign | normal >> 13);
}

// The value of each byte that holds a number without infinities. Only e4m3 has NaNs: 0x7f and 0xff.
// e2m1 stands in the middle of its byte, bits 2 to 5; six-bit numbers in the low bits.
template <int kExponent, int kMantissa, int kShift = 0>
std::array<float, 256> MakeTable() {
  constexpr int kBias = (1 << (kExponent - 1)) - 1, kBits = kExponent + kMantissa;
  std::array<float, 256> table{};
  for (int i = 0; i < 256; ++i) {
    const int number = i >> kShift;
    const int exponent = number >> kMantissa & ((1 << kExponent) - 1);
    const int mantissa = number & ((1 << kMantissa) - 1);
    const int whole = exponent == 0 ? mantissa : mantissa + (1 << kMantissa);
    float value = std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - kBias - kMantissa);
    if (kBits == 7 && (i & 0x7f) == 0x7f) value = std::numeric_limits<float>::quiet_NaN();
    table[static_cast<std::size_t>(i)] = (number >> kBits & 1) != 0 ? -value : value;
  }
  return table;
}

const std::array<float, 256>& TableOf(MatrixType type) {
  static const std::array<float, 256> kE4M3 = MakeTable<4, 3>(), kE3M2 = MakeTable<3, 2>(),
                                      kE2M3 = MakeTable<2, 3>(), kE2M1 = MakeTable<2, 1, 2>();
  return type == MatrixType::kE4M3   ? kE4M3
         : type == MatrixType::kE3M2 ? kE3M2
         : type == MatrixType::kE2M3 ? kE2M3
                                     : kE2M1;
}

void ToFloats(MatrixType type, const std::byte* from, int count, float* to) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  const auto* words = reinterpret_cast<const std::uint32_t*>(from);
  switch (type) {
    case MatrixType::kF16:
      for (int i = 0; i < count; ++i) to[i] = FromHalf(halves[i]);
      break;
    case MatrixType::kBF16:
      for (int i = 0; i < count; ++i) to[i] = std::bit_cast<float>(std::uint32_t{halves[i]} << 16);
      break;
    case MatrixType::kTF32:
      for (int i = 0; i < count; ++i) to[i] = std::bit_cast<float>(words[i] & 0xffffe000);
      break;
    case MatrixType::kE5M2:  // the upper byte of a half
      for (int i = 0; i < count; ++i) to[i] = FromHalf(std::uint32_t{bytes[i]} << 8);
      break;
    default: {
      const std::array<float, 256>& table = TableOf(type);
      for (int i = 0; i < count; ++i) to[i] = table[bytes[i]];
      break;
    }
  }
}

void ToInts(MatrixType type, const std::byte* from, int count, std::int32_t* to) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
  const auto nibble = [&](int i) { return bytes[i / 2] >> (i % 2 * 4) & 15; };
  switch (type) {
    case MatrixType::kS8:
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): the sign is meant
      for (int i = 0; i < count; ++i) to[i] = static_cast<std::int8_t>(bytes[i]);
      break;
    case MatrixType::kU8:
      for (int i = 0; i < count; ++i) to[i] = bytes[i];
      break;
    case MatrixType::kS4:
      for (int i = 0; i < count; ++i) to[i] = (nibble(i) ^ 8) - 8;
      break;
    default:  // u4
      for (int i = 0; i < count; ++i) to[i] = nibble(i);
      break;
  }
}

// Eight columns of accumulators.
template <class T>
using Block = T[kMaxRows][kColumns];

// T: float (f32 and f16 registers), std::int32_t or double.
template <class T>
void LoadBlock(const std::vector<Slot>& slots, MatrixType type, int m, int block,
               const std::byte* registers, const std::byte* constants, Block<T>& out) {
  const auto slot = [&](int i) {
    return SlotAt(registers, constants, slots[static_cast<std::size_t>(i)]);
  };
  for (int r = 0; r < m / 8; ++r) {
    const int pair = block * (m / 8) + r;
    if (type == MatrixType::kF16) {
      const auto* from = reinterpret_cast<const std::uint16_t*>(slot(pair));
      for (int l = 0; l < kLanes * 2; ++l) {
        if constexpr (std::is_same_v<T, float>) out[r * 8 + l / 8][l % 8] = FromHalf(from[l]);
      }
      continue;
    }
    for (int e = 0; e < 2; ++e) {
      const auto* from = reinterpret_cast<const T*>(slot(2 * pair + e));
      for (int l = 0; l < kLanes; ++l) out[r * 8 + l / 4][l % 4 * 2 + e] = from[l];
    }
  }
}

template <class T>
void StoreBlock(const std::vector<Slot>& slots, MatrixType type, int m, int block,
                const Block<T>& in, std::byte* registers, std::uint32_t mask) {
  const auto slot = [&](int i) { return slots[static_cast<std::size_t>(i)]; };
  for (int r = 0; r < m / 8; ++r) {
    const int pair = block * (m / 8) + r;
    if (type == MatrixType::kF16) {
      if constexpr (std::is_same_v<T, float>) {
        if (slot(pair) == kNoSlot) continue;
        auto* to = reinterpret_cast<std::uint32_t*>(registers + slot(pair) * kSlotBytes);
        ForLanes(mask, [&](int l) {
          const float* from = &in[r * 8 + l / 4][l % 4 * 2];
          to[l] = ToHalf(from[0]) | std::uint32_t{ToHalf(from[1])} << 16;
        });
      }
      continue;
    }
    for (int e = 0; e < 2; ++e) {
      if (slot(2 * pair + e) == kNoSlot) continue;
      auto* to = reinterpret_cast<T*>(registers + slot(2 * pair + e) * kSlotBytes);
      if (mask == kAllLanes) {
        for (int l = 0; l < kLanes; ++l) to[l] = in[r * 8 + l / 4][l % 4 * 2 + e];
      } else {
        ForLanes(mask, [&](int l) { to[l] = in[r * 8 + l / 4][l % 4 * 2 + e]; });
      }
    }
  }
}

// acc += a * b for eight columns; b is [k][kColumns]. Four rows at a time, because each sum waits
// for the one before it.
template <class T>
void AddProducts(int m, int k, const T* a, const T* b, Block<T>& acc) {
  typedef T Columns __attribute__((vector_size(kColumns * sizeof(T))));  // NOLINT: no alias can
  for (int i = 0; i < m; i += 4) {
    Columns sum[4];
    std::memcpy(sum, acc[i], sizeof(sum));
    for (int l = 0; l < k; ++l) {
      Columns row;
      std::memcpy(&row, b + l * kColumns, sizeof(row));
      for (int r = 0; r < 4; ++r) sum[r] += a[(i + r) * k + l] * row;
    }
    std::memcpy(acc[i], sum, sizeof(sum));
  }
}

// Eight columns of B, turned so that a row is one value of k.
template <class T>
void Turn(const T* rows, int k, T* out) {
  for (int l = 0; l < k; ++l) {
    for (int j = 0; j < kColumns; ++j) out[l * kColumns + j] = rows[j * k + l];
  }
}

constexpr int kMaxK = 128;  // of what is multiplied element by element: s4 m16n8k64 and less

struct Accumulators {
  const MatrixOp& op;
  int m;
  bool accumulate;
  std::byte* registers;
  const std::byte* constants;
  std::uint32_t mask;
  // wgmma adds to its destination.
  const std::vector<Slot>& source() const { return op.c_slots.empty() ? op.d_slots : op.c_slots; }
};

template <class T>
void LoadOrZero(const Accumulators& x, int block, Block<T>& out) {
  if (x.accumulate) {
    LoadBlock<T>(x.source(), x.op.c, x.m, block, x.registers, x.constants, out);
  } else {
    std::fill_n(&out[0][0], kMaxRows * kColumns, T{});
  }
}

void MultiplyFloats(const Accumulators& x, const Rows& a, const Rows& b) {
  const MatrixOp& op = x.op;
  const int k = op.k;
  float factors[kMaxRows * 32], rows[32 * kColumns], columns[32 * kColumns];
  ToFloats(op.a, a.bytes, x.m * k, factors);
  if (op.a_negated != op.b_negated) {
    for (int i = 0; i < x.m * k; ++i) factors[i] = -factors[i];
  }
  for (int block = 0; block < op.n / kColumns; ++block) {
    Block<float> acc;
    LoadOrZero(x, block, acc);
    ToFloats(op.b, b.at(block * kColumns), k * kColumns, rows);
    Turn(rows, k, columns);
    AddProducts(x.m, k, factors, columns, acc);
    for (int i = 0; i < x.m; ++i) {
      for (float& value : acc[i]) value = value == value ? value : std::bit_cast<float>(kNanF32);
    }
    StoreBlock<float>(op.d_slots, op.d, x.m, block, acc, x.registers, x.mask);
  }
}

// Adds what was multiplied to the accumulators, wrapping around or stopping at the limits.
void AddIntegers(const Accumulators& x, int block, const Block<std::int32_t>& products) {
  Block<std::int32_t> acc;
  LoadOrZero(x, block, acc);
  for (int i = 0; i < x.m; ++i) {
    for (int j = 0; j < kColumns; ++j) {
      const std::int64_t sum = std::int64_t{acc[i][j]} + products[i][j];
      acc[i][j] = static_cast<std::int32_t>(
          x.op.saturate ? std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX) : sum);
    }
  }
  StoreBlock<std::int32_t>(x.op.d_slots, x.op.d, x.m, block, acc, x.registers, x.mask);
}

void MultiplyIntegers(const Accumulators& x, const Rows& a, const Rows& b) {
  const MatrixOp& op = x.op;
  const int k = op.k;
  std::int32_t factors[kMaxRows * kMaxK], rows[kMaxK * kColumns], columns[kMaxK * kColumns];
  ToInts(op.a, a.bytes, x.m * k, factors);
  for (int block = 0; block < op.n / kColumns; ++block) {
    Block<std::int32_t> products = {};
    ToInts(op.b, b.at(block * kColumns), k * kColumns, rows);
    Turn(rows, k, columns);
    AddProducts(x.m, k, factors, columns, products);
    AddIntegers(x, block, products);
  }
}

void MultiplyBits(const Accumulators& x, const Rows& a, const Rows& b) {
  const MatrixOp& op = x.op;
  for (int block = 0; block < op.n / kColumns; ++block) {
    Block<std::int32_t> products = {};
    for (int i = 0; i < x.m; ++i) {
      for (int j = 0; j < kColumns; ++j) {
        for (int word = 0; word < op.k / 64; ++word) {
          std::uint64_t p = 0, q = 0;
          std::memcpy(&p, a.at(i) + word * 8, 8);
          std::memcpy(&q, b.at(block * kColumns + j) + word * 8, 8);
          products[i][j] += std::popcount(op.and_popc ? p & q : p ^ q);
        }
      }
    }
    AddIntegers(x, block, products);
  }
}

void MultiplyDoubles(const Accumulators& x, const Rows& a, const Rows& b) {
  static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const MatrixOp& op = x.op;
  Block<double> acc;
  LoadOrZero(x, 0, acc);
  const int before = std::fegetround();
  if (op.rounding != 0) std::fesetround(kModes[op.rounding & 3]);
  for (int i = 0; i < x.m; ++i) {
    const auto* row = reinterpret_cast<const double*>(a.at(i));
    for (int j = 0; j < kColumns; ++j) {
      const auto* column = reinterpret_cast<const double*>(b.at(j));
      for (int l = 0; l < op.k; ++l) acc[i][j] = std::fma(row[l], column[l], acc[i][j]);
      if (acc[i][j] != acc[i][j]) acc[i][j] = std::bit_cast<double>(kNanF64);
    }
  }
  if (op.rounding != 0) std::fesetround(before);
  StoreBlock<double>(op.d_slots, op.d, x.m, 0, acc, x.registers, x.mask);
}

// PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16": four products of 8x8x4, each by the lanes
// 4q ... 4q+3 and 16+4q ... 16+4q+3.
void MultiplyQuads(const MatrixOp& op, std::byte* registers, const std::byte* constants,
                   std::uint32_t mask) {
  const auto halves = [&](const std::vector<Slot>& slots, int lane, int i) {
    const std::byte* from = SlotAt(registers, constants, slots[static_cast<std::size_t>(i / 2)]);
    std::uint16_t value = 0;
    std::memcpy(&value, from + lane * 4 + i % 2 * 2, 2);
    return FromHalf(value);
  };
  // Row and column of accumulator i.
  const auto place = [](MatrixType type, int lane, int i) -> Place {
    const int high = lane < 16 ? 0 : 4;
    if (type == MatrixType::kF16) return {lane % 4 + high, i};
    return {(lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)};
  };
  std::uint32_t results[kLanes][8];
  for (int q = 0; q < 4; ++q) {
    float a[8][4], b[4][8], acc[8][8];
    for (int member = 0; member < 8; ++member) {
      const int lane = member % 4 + 4 * q + (member < 4 ? 0 : 16);
      const int own = lane % 4 + (lane < 16 ? 0 : 4), high = lane < 16 ? 0 : 4;
      for (int i = 0; i < 4; ++i) {
        (op.a_column ? a[i + high][lane % 4] : a[own][i]) = halves(op.a_slots, lane, i);
        (op.b_row ? b[lane % 4][i + high] : b[i][own]) = halves(op.b_slots, lane, i);
      }
      for (int i = 0; i < 8; ++i) {
        const Place at = place(op.c, lane, i);
        if (op.c == MatrixType::kF16) {
          acc[at.outer][at.inner] = halves(op.c_slots, lane, i);
        } else {
          std::memcpy(
              &acc[at.outer][at.inner],
              SlotAt(registers, constants, op.c_slots[static_cast<std::size_t>(i)]) + lane * 4, 4);
        }
      }
    }
    for (int l = 0; l < 4; ++l) {
      for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) acc[i][j] += a[i][l] * b[l][j];
      }
    }
    for (int member = 0; member < 8; ++member) {
      const int lane = member % 4 + 4 * q + (member < 4 ? 0 : 16);
      for (int i = 0; i < 8; ++i) {
        const Place at = place(op.d, lane, i);
        const float value = acc[at.outer][at.inner];
        results[lane][i] = value != value ? (op.d == MatrixType::kF16 ? kNanF16 : kNanF32)
                           : op.d == MatrixType::kF16 ? ToHalf(value)
                                                      : std::bit_cast<std::uint32_t>(value);
      }
    }
  }
  for (std::size_t s = 0; s < op.d_slots.size(); ++s) {
    if (op.d_slots[s] == kNoSlot) continue;
    std::byte* to = registers + op.d_slots[s] * kSlotBytes;
    ForLanes(mask, [&](int l) {
      const std::uint32_t word = op.d == MatrixType::kF16
                                     ? results[l][2 * s] | results[l][2 * s + 1] << 16
                                     : results[l][s];
      std::memcpy(to + l * 4, &word, 4);
    });
  }
}

}  // namespace

void Multiply(const MatrixOp& op, int m, const Rows& a, const Rows& b, bool accumulate,
              std::byte* registers, const std::byte* constants, std::uint32_t mask) {
  const Accumulators x{op, m, accumulate, registers, constants, mask};
  if (op.a == MatrixType::kF64) {
    MultiplyDoubles(x, a, b);
  } else if (op.a == MatrixType::kB1) {
    MultiplyBits(x, a, b);
  } else if (IsFloat(op.a)) {
    MultiplyFloats(x, a, b);
  } else {
    MultiplyIntegers(x, a, b);
  }
}

void Multiply(const MatrixOp& op, std::byte* registers, const std::byte* constants,
              std::uint32_t mask) {
  if (op.quads) {
    MultiplyQuads(op, registers, constants, mask);
    return;
  }
  Rows a, b;
  GatherRows(op.a_slots, op.m, op.k, op.a, false, registers, constants, &a);
  GatherRows(op.b_slots, op.n, op.k, op.b, true, registers, constants, &b);
  Multiply(op, op.m, a, b, true, registers, constants, mask);
}

}  // namespace allranks::node::matrix
