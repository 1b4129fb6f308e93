// Values of options, checked as they are read, so that a wrong one is found before any work begins.
// A message says what was expected, and the nearest word if there is one.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace allranks::cli {

// An integer; without `high`, of any size that 64 bits hold.
CLI::Validator Whole(std::int64_t low,
                     std::uint64_t high = std::numeric_limits<std::uint64_t>::max());
// A finite number. `what` says of what ("seconds").
CLI::Validator Number(double low, double high = std::numeric_limits<double>::infinity(),
                      const std::string& what = "");
// One of these words; they stand in the help as well.
CLI::Validator OneOf(const std::vector<std::string>& known);
CLI::Validator NotEmpty();

// An option whose value is words with commas between them, each of them known.
CLI::Option* AddWords(CLI::App* command, const std::string& name, std::vector<std::string>* words,
                      const std::vector<std::string>& known, const std::string& what);

}  // namespace allranks::cli
