// 8- and 16-bit floating-point formats as numbers, one at a time: for atomics and multimem, where
// memory holds them. (The arithmetic kernels have their own, made for whole slots: alu_float.h.)
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace allranks::node {

inline constexpr std::uint32_t kCanonicalNanF32 = 0x7fffffff;

// A format with one sign bit, kExponent bits of exponent and kMantissa bits of mantissa. kFinite:
// no infinities, all ones is the only NaN (e4m3), and what is too large becomes the largest number.
template <int kExponent, int kMantissa, bool kFinite, std::uint32_t kNan>
struct SmallFloat {
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr std::uint32_t kSign = 1u << (kExponent + kMantissa);
  static constexpr std::uint32_t kExponentMask = (1u << kExponent) - 1;
  static constexpr std::uint32_t kMantissaMask = (1u << kMantissa) - 1;
  static constexpr std::uint32_t kInfinity = kExponentMask << kMantissa;
  static constexpr std::uint32_t kLargest = kFinite ? kNan - 1 : kInfinity - 1;

  static float Load(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & (kSign - 1);
    const bool nan = kFinite ? magnitude == kNan : magnitude > kInfinity;
    if (nan) return std::bit_cast<float>(kCanonicalNanF32);
    float value = 0;
    if (!kFinite && magnitude == kInfinity) {
      value = INFINITY;
    } else {
      const auto exponent = static_cast<int>(magnitude >> kMantissa);
      const std::uint32_t mantissa =
          (magnitude & kMantissaMask) | (exponent == 0 ? 0 : kMantissaMask + 1);
      value = std::ldexp(static_cast<float>(mantissa),
                         (exponent == 0 ? 1 : exponent) - kBias - kMantissa);
    }
    return (bits & kSign) != 0 ? -value : value;
  }

  // To nearest, ties to even.
  static std::uint32_t Store(float value) {
    if (std::isnan(value)) return kNan;
    const std::uint32_t sign = std::signbit(value) ? kSign : 0;
    const float magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return sign | (kFinite ? kLargest : kInfinity);
    int exponent = 0;
    std::frexp(magnitude, &exponent);  // magnitude = 0.5..1 * 2^exponent
    // Distance of neighbouring numbers at this magnitude, as a power of two.
    int unit = exponent - 1 - kMantissa;
    if (magnitude == 0 || unit < 1 - kBias - kMantissa) unit = 1 - kBias - kMantissa;
    const float scaled = std::ldexp(magnitude, -unit);  // exact: at most 24 bits
    auto whole = static_cast<std::uint32_t>(scaled);
    const float rest = scaled - static_cast<float>(whole);
    if (rest > 0.5f || (rest == 0.5f && (whole & 1) != 0)) ++whole;
    // Adding works for subnormals too, and a carry goes into the exponent.
    const auto biased = static_cast<std::uint32_t>(unit - (1 - kBias - kMantissa));
    const std::uint32_t bits = (biased << kMantissa) + whole;
    if (bits > kLargest) return sign | (kFinite ? kLargest : kInfinity);
    return sign | bits;
  }
};

using Half = SmallFloat<5, 10, false, 0x7fff>;
using Bfloat = SmallFloat<8, 7, false, 0x7fff>;
using E5M2 = SmallFloat<5, 2, false, 0x7f>;
using E4M3 = SmallFloat<4, 3, true, 0x7f>;

}  // namespace allranks::node
