// Bugs of communication code, sown into any CUDA source: fences, orders, scopes, barriers, waits,
// flags and buffers are found by their text, without tags. Each place gives one mutant for each
// operator that fits it, in a fixed order; docs/checker.md lists the operators.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace allranks::mutants {

struct Seeded {
  std::string op;
  std::string place;  // LINE, or LINE.N if the operator fits a line N + 1 times, and @LINE if only
                      // the call of the function at that line is concerned
  std::string text;   // the whole source with the bug in it
};

// Only what stands between the lines `// >>> edit` and `// <<< edit` is changed; without them
// `source` is a region, and `before` what stands in front of it.
std::vector<Seeded> Seed(std::string_view source, std::string_view before = "");

}  // namespace allranks::mutants
