// How far a correct result may be from the exact one. A Budget is proven, not tuned: any order of
// accumulation in the stated type stays inside, so a correct solution never fails, and one that
// accumulates in a smaller type does not stay inside on the judge's inputs.
//
// u is the unit of a type (formats.h), gamma(k, u) = k u / (1 - k u). With exact terms x_i,
// whatever the order or the shape of the tree, each x_i passes at most n - 1 rounded additions:
//   |computed - exact| <= gamma(n - 1, u) * sum |x_i|            (Higham, section 4.2)
// Additions of floats never underflow inexactly. Rounding the result c to the output's type adds at
// most u_out * |c| + half its smallest number, and |c| <= |exact| + the error so far.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "allranks/oracle/formats.h"

namespace allranks::oracle {

struct Budget {
  double of_magnitude = 0;  // times the sum of the terms' absolute values
  double of_result = 0;     // times the exact result's absolute value
  double constant = 0;
  double Of(double magnitude, double expected) const {
    return of_magnitude * magnitude + of_result * std::abs(expected) + constant;
  }
};

constexpr double Gamma(double roundings, double unit) {
  return roundings * unit / (1 - roundings * unit);
}

// `error`: bound of the accumulated result, relative to the terms' magnitude, with `constant` on
// top. Adds the output's rounding and what the oracle's own arithmetic in double may be off:
// `terms` roundings of 2^-53, and some in computing and comparing with the bound itself.
constexpr Budget WithOutput(double error, double constant, std::uint64_t terms, Type accumulated,
                            Type out) {
  const bool rounded = UnitOf(out) > UnitOf(accumulated);
  const double unit = rounded ? UnitOf(out) : 0;
  constexpr double kOwn = 1 + 0x1p-40;
  return {.of_magnitude = (error * (1 + unit) + (static_cast<double>(terms) + 2) * 0x1p-52) * kOwn,
          .of_result = (unit + 0x1p-52) * kOwn,
          .constant = (constant * 2 + (rounded ? SmallestOf(out) / 2 : 0)) * kOwn};
}

// A sum of `terms` numbers, added in any order in `accumulated` and then stored as `out`. Terms
// that `accumulated` cannot hold are rounded to it first: one rounding more for each.
constexpr Budget SumBudget(Type in, Type accumulated, Type out, std::uint64_t terms) {
  const bool rounds_terms = UnitOf(in) < UnitOf(accumulated);
  const double roundings = static_cast<double>(terms == 0 ? 0 : terms - 1) + (rounds_terms ? 1 : 0);
  const double constant =
      rounds_terms ? static_cast<double>(terms) * SmallestOf(accumulated) / 2 : 0;
  return WithOutput(Gamma(roundings, UnitOf(accumulated)), constant, terms, accumulated, out);
}
inline double SumBound(Type in, Type accumulated, Type out, std::uint64_t terms, double magnitude,
                       double expected) {
  return SumBudget(in, accumulated, out, terms).Of(magnitude, expected);
}

// A weighted sum: products of `terms` pairs, each product rounded to `accumulated` or fused, added
// in any order. One rounding more per term than a sum; products may underflow, each by at most half
// the smallest number.
constexpr Budget WeightedSumBudget(Type accumulated, Type out, std::uint64_t terms) {
  const auto n = static_cast<double>(terms);
  return WithOutput(Gamma(n, UnitOf(accumulated)), n * SmallestOf(accumulated) / 2, terms,
                    accumulated, out);
}

// A dot product on tensor cores: `terms` products of 16-bit floats, exact in f32, added in groups
// of at least 4. A group's addends are cut, not rounded, at one bit below f32's last place of the
// largest one, and the sum is cut to f32: per group of m at most ((m + 1) / 2 + 1) 2^-23 of the
// magnitude so far, which is <= m 2^-23 from m = 4 on. So the unit is 2^-23 per term; adding one
// after the other with rounding, as the node does, is well inside.
constexpr Budget DotBudget(Type accumulated, Type out, std::uint64_t terms) {
  const auto n = static_cast<double>(terms);
  return WithOutput(Gamma(n, 2 * UnitOf(accumulated)), n * SmallestOf(accumulated), terms,
                    accumulated, out);
}

// Integers: with |partial sums| of at most this the arithmetic of `type` is exact in any order, so
// results are compared exactly.
constexpr double ExactLimit(Type type) { return IsFloat(type) ? 1 / UnitOf(type) : 0; }

}  // namespace allranks::oracle
