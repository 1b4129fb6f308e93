// Protocol programs that are wrong on purpose, built and run under `exec --check`.
//
// They say in their first lines what is wrong with which -DBUG=n:
//   // EXPECT 2 race: the flag is stored relaxed
//   // RANKS 4
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "remedies/cure.h"

namespace allranks::remedies {

struct Variant {
  std::filesystem::path source;
  int bug = 0, ranks = 0;
  std::string kind;
  std::string besides;  // a kind that variant 0 shows as well: another cause, not this bug's
  std::string Name() const;
};

// Of a source or all sources of a folder. "p06" in `only` is all of p06_*, "p06:3" one of them.
std::vector<Variant> VariantsOf(const std::vector<std::string>& sources,
                                const std::vector<std::string>& only);

// Schedules 0 to `schedules`. `folder` is for its files.
Cure TryVariant(const Variant& variant, const std::string& command, int schedules,
                const std::filesystem::path& folder, nlohmann::json* first);

}  // namespace allranks::remedies
