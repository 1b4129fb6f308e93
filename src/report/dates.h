// When a run was made, as its log says.
#pragma once

#include <filesystem>
#include <string>

namespace allranks::report {

struct Dates {
  std::string first, last;  // 2026-11-19T22:04:31Z; empty: unknown
};

// Of the first and the last line of RUN/log.txt. The log is for people and may be anything: what is
// not a time is no date.
Dates DatesOf(const std::filesystem::path& run);

}  // namespace allranks::report
