// How hard a problem is, measured: docs/problems.md has the rubric.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "problem/problem.h"

namespace allranks::problem {

// What makes it hard: "ragged", "overlap", "narrow types", ... A reference that is twice as long as
// usual counts twice.
Result<std::vector<std::string>> Difficulties(const Problem& problem);

// "easy", "medium" or "hard".
std::string LevelOf(const std::vector<std::string>& difficulties);

}  // namespace allranks::problem
