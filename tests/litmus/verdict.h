// Holds a section's expectations against its runs under many seeds; litmus_test.cpp prints what is
// wrong.
#pragma once

#include <cstdint>
#include <string>

#include "litmus_file.h"
#include "node/hardware/profile.h"

namespace allranks::litmus {

struct Verdict {
  std::string failure;  // what does not hold, with seed, outcomes and findings; empty: all holds
  std::uint64_t runs = 0;
  std::uint64_t outcomes = 0;  // distinct ones
  std::uint64_t reached = 0;   // `allow`s
};

// Seeds 0 to `seeds` - 1, and more of them, up to kMostSeeds, for what only some seed must show.
// Not `checked`: without the checker, which leaves nothing but what is forbidden.
inline constexpr std::uint64_t kMostSeeds = 10'000;
Verdict Judge(const node::Profile& profile, const Test& test, const Section& section,
              std::uint64_t seeds, bool checked);

}  // namespace allranks::litmus
