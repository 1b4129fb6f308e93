// Numbers from a stream, by element type and kind of draw. Used by Drawer::Fill.
//
// Floats are never NaN, infinite or subnormal, are held exactly by their type, and a sum of 16 of
// them, of any signs, does not overflow. `mixed` takes one of these per call, all of them in five
// calls:
//   uniform   in [-1, 1)
//   wide      any sign, magnitudes 2^-12 to 2^12 (f16: 2^11), exponents equally likely
//   integers  in [-8, 8]: sums are exact
//   sparse    15 of 16 are 0, the others wide
//   huge      one of 8 is up to 2^11 in magnitude (f32, f64: 2^20), the others in [-1, 1)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "judge/stream.h"
#include "problem/problem.h"

namespace allranks::judge {

inline constexpr std::size_t kMixtures = 5;

struct DrawRequest {
  problem::Type type = problem::Type::kF32;
  problem::Draw::Kind kind = problem::Draw::Kind::kUniform;
  std::int64_t limit = 0;
  std::int64_t row = 1;  // length of the last dimension: of counts and topk
  std::uint32_t call = 0;
  std::array<std::uint8_t, kMixtures> order{};  // mixed: call k takes distribution order[k % 5]
  std::uint64_t common = 0;                     // topk: the same experts are hot on all ranks
};

Status FillValues(const DrawRequest& request, Stream& stream, std::span<std::byte> to);

}  // namespace allranks::judge
