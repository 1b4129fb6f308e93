// Element types of PTX. Apart from module.h because the node's arithmetic kernels, which are
// compiled three times, need nothing else of it.
#pragma once

#include <cstdint>
#include <string_view>

namespace allranks::ptx {

// Element types as they appear in declarations and as instruction suffixes. Packed and sub-byte
// types are named as in PTX (`f16x2`, `e4m3x2`, ...).
enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBF16,
  kBF16x2,
  kTF32,
  kF32,
  kF32x2,
  kF64,
  kU16x2,
  kS16x2,
  kOther,
};

// Bytes of one element; 0 for kNone, kPred and kOther.
int SizeOf(Type type);
// "u32" -> kU32 and so on; kNone if the word is not a type. Types that only exotic instructions
// have (e4m3x2, u4, ...) give kOther.
Type TypeFromWord(std::string_view word);

}  // namespace allranks::ptx
