// Names of arithmetic handlers, shared by the selection (alu_select.cpp, compiled once) and by the
// kernels (alu_kernels_*.cpp, compiled once per instruction set). A handler is found by a key: what
// it does, the types of its result and of its operands, and a variant. Everything a handler can
// decide cheaply at run time (combining with a predicate, directed rounding, ...) is in Op::imm.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node/op.h"
#include "ptx/module.h"

namespace allranks::node::alu {

enum class What : std::uint8_t {
  // data movement
  kMov,
  kPack2,
  kPack4,
  kUnpack2,
  kUnpack4,
  kSelect,
  kSlct,
  kPredConstant,
  kAddBase,
  kIsSpace,
  // integers
  kAdd,
  kAddSat,
  kSub,
  kSubSat,
  kMulLo,
  kMulHi,
  kMulWide,
  kMadLo,
  kMadHi,
  kMadHiSat,
  kMadWide,
  kMul24Lo,
  kMul24Hi,
  kMad24Lo,
  kMad24Hi,
  kMad24HiSat,
  kDiv,
  kRem,
  kMin,
  kMax,
  kMinRelu,
  kMaxRelu,
  kAbs,
  kNeg,
  kSad,
  kAddCarry,
  kSubCarry,
  kMadLoCarry,
  kMadHiCarry,
  kDp4a,
  kDp2aLo,
  kDp2aHi,
  // bits
  kAnd,
  kOr,
  kXor,
  kNot,
  kCnot,
  kShl,
  kShr,
  kShfL,
  kShfR,
  kLop3,
  kPrmt,
  kBfe,
  kBfi,
  kBrev,
  kPopc,
  kClz,
  kBfind,
  kFns,
  kBmsk,
  kSzext,
  // comparison: variant is a Compare, Op::imm a CompareImm
  kSetp,
  kSet,
  kSetpPacked,
  kSetPacked,
  kTestp,
  // floating point
  kMul,
  kFma,
  kRcp,
  kSqrt,
  kRsqrt,
  kSin,
  kCos,
  kLg2,
  kEx2,
  kTanh,
  kCopysign,
  kMin3,
  kMax3,
  kAddDirected,
  kSubDirected,
  kMulDirected,
  kFmaDirected,
  kDivDirected,
  kRcpDirected,
  kSqrtDirected,
  // conversion
  kExtend,
  kIntToIntSat,
  kFloatToInt,
  kIntToFloat,
  kFloatToFloat,
  kFloatToFloatSlow,
  kFloatToIntegral,
  kFloatPack,
  kFloatPackSlow,
  kToTf32,
  kFp8Pack,
  kFp8Unpack,
  kPackSat,
};

// Variants of floating-point handlers.
inline constexpr std::uint32_t kFtz = 1, kSat = 2, kNaN = 4, kXorsign = 8, kRelu = 16;
// Variant of kExtend: the source register is 64 bits wide though the source type is not.
inline constexpr std::uint32_t kFromWide = 1;

// The comparisons that are left when operands may be swapped and the result negated.
enum Compare : std::uint32_t { kEqual, kEqualOrNan, kLess, kLessOrEqual, kOrdered };

// Op::imm of comparisons.
inline constexpr std::uint32_t kCombineMask = 3, kCombineAnd = 1, kCombineOr = 2, kCombineXor = 3;
inline constexpr std::uint32_t kInvert = 4;        // the comparison's result is negated
inline constexpr std::uint32_t kCompareFtz = 8;    // subnormal operands count as zero
inline constexpr std::uint32_t kTrueIsFloat = 16;  // set: 1.0 rather than all ones
inline constexpr std::uint32_t kTrueIsHalf = 32;   // set: 16-bit result
inline constexpr std::uint32_t kTrueIsBf16 = 64;

// Op::imm of directed rounding and of the slow conversions.
enum Rounding : std::uint32_t { kRn, kRz, kRm, kRp, kRna };
inline constexpr std::uint32_t kRoundingMask = 7, kImmFtz = 8, kImmSat = 16, kImmRelu = 32;
inline constexpr std::uint32_t kImmSatfinite = 64;
inline constexpr int kImmSourceShift = 8, kImmResultShift = 16;  // ptx::Type of either side

// Op::imm of carry chains.
inline constexpr std::uint32_t kImmCarryIn = 1, kImmCarryOut = 2;

// Op::imm of kTestp.
enum Test : std::uint32_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };

// Op::imm of kIsSpace and kAddBase: bits 40 and up of the window; kIsSpace: 0 asks for global.
inline constexpr std::uint32_t kSharedWindow = 0x60, kLocalWindow = 0x61, kParamWindow = 0x62;
inline constexpr int kWindowShift = 40;
inline constexpr std::uint32_t kSubtractBase = 0x100, kNoSpace = 0x200;

constexpr std::uint32_t Key(What what, ptx::Type result, ptx::Type source = ptx::Type::kNone,
                            std::uint32_t variant = 0) {
  return static_cast<std::uint32_t>(what) << 24 | static_cast<std::uint32_t>(result) << 18 |
         static_cast<std::uint32_t>(source) << 12 | variant;
}

struct Entry {
  std::uint32_t key;
  AluFn fn;
};

struct Entries {
  const Entry* data;
  std::size_t size;
};

// Each instruction set has its own namespace with the same tables.
#define ALLRANKS_ALU_TABLES(isa) \
  namespace isa {                \
  Entries IntegerEntries();      \
  Entries BitEntries();          \
  Entries MoveEntries();         \
  Entries CompareEntries();      \
  Entries FloatEntries();        \
  Entries HalfEntries();         \
  Entries ConvertEntries();      \
  Entries SpecialEntries();      \
  }
ALLRANKS_ALU_TABLES(isa_v2)
ALLRANKS_ALU_TABLES(isa_v3)
ALLRANKS_ALU_TABLES(isa_v4)
#undef ALLRANKS_ALU_TABLES

}  // namespace allranks::node::alu
