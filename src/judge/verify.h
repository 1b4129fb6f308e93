// The oracle of a problem at work: its oracle.cpp compiled to a shared object and loaded into this
// process, and called on views of the inputs and outputs of one call. Oracles are trusted code of
// the problems' authors; what they cannot do is our fault, never the candidate's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "judge/judge.h"
#include "judge/roofline.h"
#include "problem/problem.h"

namespace allranks::judge {

// One call of all ranks: pointers into the two memory files.
struct CallView {
  std::uint32_t poison = 0;               // of all outputs
  std::array<std::uint64_t, 4> random{};  // Drawer::OracleRandom
  // [rank][tensor], in the problem's order: inputs as drawn, outputs as kept; others are empty.
  std::vector<std::vector<std::span<const std::byte>>> by_rank;
};

struct Verified {
  std::string failure;      // the oracle could not judge: an internal error
  std::uint64_t wrong = 0;  // elements
  std::string text;         // of the first few: "rank 3, out[17]: 1.25 +- 3e-07 expected, got 0"
};

class Oracle {
 public:
  // Compiles, or takes from the cache. Fails with the compiler's or the loader's words.
  static Result<Oracle> Load(const Tools& tools, const problem::Problem& problem);
  ~Oracle();
  Oracle(Oracle&& other) noexcept;
  Oracle& operator=(Oracle&&) = delete;
  Oracle(const Oracle&) = delete;

  Verified Verify(const problem::Problem& problem, const problem::Case& one,
                  const CallView& view) const;
  // Floors of one call by rank: problem.toml's, or what the oracle makes of them from what was
  // drawn. Outputs may be empty.
  Result<std::vector<FloorValues>> Floors(const problem::Problem& problem, const problem::Case& one,
                                          const CallView& view) const;

 private:
  Oracle() = default;
  void* handle_ = nullptr;
  void* entry_ = nullptr;
  void* floors_ = nullptr;
};

}  // namespace allranks::judge
