// What the judge draws in secret: inputs, the cases that no candidate sees before, when ranks enter
// a call, what outputs are poisoned with. All of it follows from one key (stream.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "judge/stream.h"
#include "problem/problem.h"

namespace allranks::judge {

class Drawer {
 public:
  explicit Drawer(const Key& key) : key_(key) {}

  // The drawn cases of a problem, "drawn.0" and so on. They run in two worlds at most, the largest
  // and one that is drawn, since each world costs a session. Sizes are at the edges of their ranges
  // often, else of any order of magnitude, and mostly neither even nor divisible by the world.
  std::vector<problem::Case> DrawCases(const problem::Problem& problem) const;

  // Fills an input of one rank for one call; `to` has the tensor's size. All ranks get the same if
  // the tensor says so. Fails only if the draw and
  // its limit do not fit the tensor, which is a fault of the problem.
  Status Fill(const problem::Problem& problem, const problem::Case& one, std::size_t tensor,
              std::uint32_t call, int rank, std::span<std::byte> to) const;

  // Repeated over an output when a call opens: NaN as f32, f64, and in both halves as f16 and bf16.
  std::uint32_t PoisonWord(std::string_view case_name, std::uint32_t call) const;
  // How much later than it could a rank enters a call of a case with skew.
  std::int64_t DelayPs(std::string_view case_name, std::uint32_t call, int rank) const;
  // When a window begins whose first call has this number, from some moment of the node's on.
  std::int64_t BeginPs(std::string_view case_name, std::uint32_t call) const;
  // What a schedule is drawn from; not 0.
  std::uint64_t ScheduleSeed(std::string_view case_name, std::uint32_t call) const;
  // What a sample of memory is drawn from; not 0.
  std::uint64_t SampleSeed(std::string_view case_name, std::uint32_t call) const;
  // In [0, 1).
  double Fraction(std::string_view case_name, std::string_view label) const;
  // Brings `count` things into a drawn order by exchanging two at a time.
  void Shuffle(std::string_view case_name, std::size_t count,
               const std::function<void(std::size_t, std::size_t)>& exchange) const;
  // For an oracle's randomised checks of a call.
  std::array<std::uint64_t, 4> OracleRandom(std::string_view case_name, std::uint32_t call) const;
  // 64 hexadecimal digits.
  std::string Secret(std::string_view label) const;

 private:
  Key key_;
};

}  // namespace allranks::judge
