// Names of objects begin with the rank that made them; where there is one process that tells
// nobody anything.
#pragma once

#include <string_view>

namespace allranks::node {

// "device 5 allocation #2" of "rank 0 device 5 allocation #2".
inline std::string_view NameWithoutRank(std::string_view name) {
  constexpr std::string_view kRank = "rank 0 ";
  if (name.starts_with(kRank)) name.remove_prefix(kRank.size());
  return name;
}

}  // namespace allranks::node
