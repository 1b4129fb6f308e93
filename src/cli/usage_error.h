// What is said of a command line that cannot be read: what is wrong with it, what is allowed, the
// nearest right word, and where the help is. The one place that turns CLI11's errors into messages.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace allranks::cli {

// The lines for stderr. `app` has tried to parse, and failed with `error`; `behind` are the words
// behind `--`.
std::string ExplainUsage(const CLI::App& app, const CLI::ParseError& error,
                         const std::vector<std::string>& behind);

// Checks that hold for every option of every command: no value is empty.
void AddCommonChecks(CLI::App* app);

// Mistakes that only options together make: two that write to one file. Empty: none.
std::string ExplainTogether(const CLI::App& app);

}  // namespace allranks::cli
