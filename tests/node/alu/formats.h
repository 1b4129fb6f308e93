// 16-bit (and 8-bit) float formats by table: every value of the format sorted, rounding by search.
// Slow and plain, as an expectation should be.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace allranks::node::alu_test {

__extension__ typedef __float128 quad;

enum class Mode { kNearest, kZero, kDown, kUp, kNearestAway };

// a + b in 113 bits with the last bit standing for everything cut off: bf16's range is wider than
// that, and a later rounding must still see which side of a tie the sum is on.
inline quad AddOdd(quad a, quad b) {
  const quad sum = a + b;
  if (sum != sum || sum - sum != 0) return sum;
  const quad part = sum - a;
  const quad error = (a - (sum - part)) + (b - part);
  if (error == 0) return sum;
  std::uint64_t words[2];  // little-endian; the value's order is that of its bits
  std::memcpy(words, &sum, sizeof words);
  if ((words[0] & 1) == 0) {
    // An even value is never the odd neighbour: step to the one on the exact sum's side.
    const bool outwards = (error > 0) == (sum > 0);
    if (outwards) {
      words[0] |= 1;
    } else {
      words[1] -= words[0] == 0 ? 1 : 0;
      words[0] -= 1;
    }
  }
  quad r;
  std::memcpy(&r, words, sizeof r);
  return r;
}

class Format16 {
 public:
  // What the highest exponent holds: infinities and NaNs, numbers and one NaN, or numbers alone.
  enum class Top { kInfinities, kOneNan, kNumbers };

  Format16(int mantissa, int exponent, Top top = Top::kInfinities)
      : mantissa_(mantissa), exponent_(exponent), top_(top) {
    for (std::uint32_t b = 0; b < 2 * sign(); ++b) {
      all_.push_back(Compute(static_cast<std::uint16_t>(b)));
    }
    for (std::uint32_t b = 0; b < sign(); ++b) {
      if (!IsNan(static_cast<std::uint16_t>(b)) && !IsInfinite(static_cast<std::uint16_t>(b))) {
        values_.push_back(Value(static_cast<std::uint16_t>(b)));
      }
    }
  }

  bool IsNan(std::uint16_t b) const {
    const std::uint32_t magnitude = b & (sign() - 1);
    if (top_ == Top::kNumbers) return false;
    return top_ == Top::kOneNan ? magnitude == sign() - 1 : magnitude > infinity();
  }
  bool IsInfinite(std::uint16_t b) const {
    return top_ == Top::kInfinities && (b & (sign() - 1)) == infinity();
  }

  double Value(std::uint16_t b) const { return all_[b & (2 * sign() - 1)]; }
  double Compute(std::uint16_t b) const {
    const double s = (b & sign()) != 0 ? -1 : 1;
    const int fraction = b & ((1 << mantissa_) - 1);
    const int biased = (b & (sign() - 1)) >> mantissa_;
    const int bias = (1 << (exponent_ - 1)) - 1;
    if (IsNan(b)) return NAN;
    if (IsInfinite(b)) return s * INFINITY;
    if (biased == 0) return s * std::ldexp(fraction, 1 - bias - mantissa_);
    return s * std::ldexp(fraction + (1 << mantissa_), biased - bias - mantissa_);
  }

  std::uint16_t Largest() const { return static_cast<std::uint16_t>(values_.size() - 1); }
  std::uint16_t SignBit() const { return static_cast<std::uint16_t>(sign()); }

  std::uint16_t Flushed(std::uint16_t b) const {
    return (b & infinity()) == 0 ? static_cast<std::uint16_t>(b & sign()) : b;
  }

  // NaN gives all ones below the sign; overflow gives infinity, or the largest value if satfinite.
  std::uint16_t Round(quad v, Mode mode, bool satfinite = false) const {
    if (v != v) return static_cast<std::uint16_t>(sign() - 1);
    const bool negative = v < 0 || (v == 0 && std::signbit(static_cast<double>(v)));
    const quad m = negative ? -v : v;
    const std::uint32_t count = static_cast<std::uint32_t>(values_.size());
    const bool away = mode == Mode::kNearest || mode == Mode::kNearestAway ||
                      (mode == Mode::kDown && negative) || (mode == Mode::kUp && !negative);
    // Index of the largest value not above m: searched in double, which may round m across one.
    const double near = static_cast<double>(m);
    std::uint32_t low = 0;
    for (std::uint32_t step = 1u << 15; step > 0; step >>= 1) {
      if (low + step < count && values_[low + step] <= near) low += step;
    }
    while (low > 0 && static_cast<quad>(values_[low]) > m) --low;
    while (low + 1 < count && static_cast<quad>(values_[low + 1]) <= m) ++low;
    std::uint32_t r = low;
    const quad below = values_[low];
    // One step beyond the largest value is where infinity lies for rounding.
    const quad step = static_cast<quad>(values_[count - 1]) - static_cast<quad>(values_[count - 2]);
    const quad above = low + 1 < count ? static_cast<quad>(values_[low + 1]) : below + step;
    if (m != below) {
      switch (mode) {
        case Mode::kNearest:
          r += m - below > above - m || (m - below == above - m && (low & 1) != 0) ? 1 : 0;
          break;
        case Mode::kNearestAway:
          r += m - below >= above - m ? 1 : 0;
          break;
        case Mode::kZero:
          break;
        default:
          r += away ? 1 : 0;
          break;
      }
    }
    const bool huge = m - m != 0;
    if (r >= count || huge) {
      const std::uint32_t top = top_ == Top::kInfinities ? infinity() : sign() - 1;
      r = satfinite || (!away && !huge) ? count - 1 : top;
    }
    return static_cast<std::uint16_t>(r | (negative ? sign() : 0));
  }

 private:
  std::uint32_t sign() const { return 1u << (mantissa_ + exponent_); }
  std::uint32_t infinity() const { return ((1u << exponent_) - 1) << mantissa_; }

  int mantissa_, exponent_;
  Top top_;
  std::vector<double> values_, all_;  // not negative and finite; by bits
};

inline const Format16 kHalf(10, 5), kBf16(7, 8), kE4m3(3, 4, Format16::Top::kOneNan), kE5m2(2, 5);

}  // namespace allranks::node::alu_test
