// Names of arithmetic handlers, shared by the selection (alu_select.cpp, compiled once) and by the
// kernels (alu_kernels_*.cpp, compiled once per instruction set). A handler is found by a key: what
// it does, the types of its result and of its operands, and a variant. Everything a handler can
// decide cheaply at run time (combining with a predicate, directed rounding, ...) is in Op::imm.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node/code/op.h"
#include "ptx/type.h"

namespace allranks::node::alu {

enum class AluOp : std::uint8_t {
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
  kPredicateLogic,  // Op::imm: the truth table, bit 2a + b
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
  kAddDirected,
  kSubDirected,
  kMulDirected,
  kFmaDirected,
  kDivDirected,
  kRcpDirected,
  kSqrtDirected,
  kDivApprox,
  kAddMixed,  // f32 from f16 or bf16 and f32
  kSubMixed,
  kFmaMixed,
  kExtremeSlow,   // min and max of f32 with .xorsign.abs
  kExtreme3Slow,  // of three f32
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
  kSmallPack,    // two small floats; variant: what they are made of (SmallSource)
  kSmallPack4,   // four, rounded by random bits
  kSmallUnpack,  // two small floats to two halves
  kPackSat,
  // video: variant is a VideoOp
  kVideo,
  kVideo2,
  kVideo4,
};

// Variants of floating-point handlers.
inline constexpr std::uint32_t kFtz = 1, kSat = 2, kNaN = 4, kXorsign = 8, kRelu = 16, kOob = 32,
                               kAbsolute = 64, kMaximum = 128;
// Op::imm of min and max of halves: the variant, and whether they are bf16 rather than f16.
inline constexpr std::uint32_t kImmBf16 = 256;
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
inline constexpr std::uint32_t kCompareBf16 = 128;  // of the handlers of halves (kF16)
inline constexpr std::uint32_t kComparePair = 256;  // pairs of halves, two results

// Op::imm of directed rounding and of the slow conversions.
enum Rounding : std::uint32_t { kRn, kRz, kRm, kRp, kRna, kRs };
inline constexpr std::uint32_t kRoundingMask = 7, kImmFtz = 8, kImmSat = 16, kImmRelu = 32;
inline constexpr std::uint32_t kImmSatfinite = 64;
inline constexpr std::uint32_t kImmWideSource = 128;  // the source register is 64 bits wide
inline constexpr int kImmSourceShift = 8, kImmResultShift = 16;  // ptx::Type of either side
inline constexpr int kImmExtendShift = 24;                       // bytes of the result's register
inline constexpr std::uint32_t kImmIntegral = 1u << 31;  // .rni and so on with a float result

// Op::imm of small floats: one of these at kImmResultShift.
enum SmallFormat : std::uint32_t { kE4m3, kE5m2, kE2m3, kE3m2, kE2m1, kUe8m0 };
enum SmallSource : std::uint32_t { kFromF32, kFromHalves };

// What a NaN that stands for an element outside of a tensor looks like to fma.oob, in f16 and bf16.
inline constexpr std::uint16_t kOobNan = 0xffff;

// Op::imm of kPackSat: bits of a part, and whether they are signed.
inline constexpr std::uint32_t kPackBits = 0xff, kPackSigned = 0x100;

// Video instructions.
enum VideoOp : std::uint32_t {
  kVadd,
  kVsub,
  kVabsdiff,
  kVmin,
  kVmax,
  kVavrg,
  kVshl,
  kVshr,
  kVmad,
  kVsetEq,
  kVsetNe,
  kVsetLt,
  kVsetLe,
  kVsetGt,
  kVsetGe,
};

// Op::imm of kVideo. Selectors: 0 the word, 1 to 4 its bytes, 5 and 6 its halves.
enum VideoSecond : std::uint32_t { kNoSecond, kSecondAdd, kSecondMin, kSecondMax };
struct VideoImm {
  static constexpr std::uint32_t kSignedA = 1, kSignedB = 2, kSignedD = 4, kSat = 8, kWrap = 16;
  static constexpr std::uint32_t kPlusOne = 32, kNegateProduct = 64, kNegateC = 128;
  static constexpr int kSecond = 8, kSelectA = 10, kSelectB = 13, kSelectD = 16;
  static constexpr int kScale = 19;  // 0, 7 or 15: bits to shift right by
};
// Op::imm of kVideo2 and kVideo4: four selectors of three bits for each of a and b, a mask of
// parts, whether a and b are signed, and what becomes of the parts.
enum SimdSecond : std::uint32_t { kMerge, kMergeSatUnsigned, kMergeSatSigned, kAccumulate };
struct SimdImm {
  static constexpr int kSelectA = 0, kSelectB = 12, kMask = 24, kSignedA = 28, kSignedB = 29,
                       kSecond = 30;
};

// Op::imm of carry chains.
inline constexpr std::uint32_t kImmCarryIn = 1, kImmCarryOut = 2;

// Op::imm of kTestp.
enum Test : std::uint32_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };

// Op::imm of kIsSpace and kAddBase: bits 40 and up of the window; kIsSpace: 0 asks for global.
inline constexpr std::uint32_t kSharedWindow = 0x60, kLocalWindow = 0x61, kParamWindow = 0x62;
inline constexpr int kWindowShift = 40;
inline constexpr std::uint32_t kSubtractBase = 0x100, kNoSpace = ~0u;

constexpr std::uint32_t Key(AluOp what, ptx::Type result, ptx::Type source = ptx::Type::kNone,
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
// The slow ones are compiled once, in isa_any.
namespace isa_any {
Entries SlowConvertEntries();
Entries VideoEntries();
}  // namespace isa_any
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
