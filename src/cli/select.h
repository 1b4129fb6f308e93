// Words of --models and --problems, and what they stand for.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/entry.h"
#include "problem/problem.h"

namespace allranks::cli {

// At commas; a `command:` takes the rest, whose commas are its own.
std::vector<std::string> SplitModels(const std::string& words);

// `file`: as FindModelsFile takes it.
Result<std::vector<model::Entry>> SelectModels(const std::vector<std::string>& words,
                                               const std::string& file);

// Slugs and paths, all, category:C, level:L, in any mixture; each problem once, in the order of the
// words and by slug within one. `folder`: as --problems-dir.
Result<std::vector<problem::Problem>> SelectProblems(const std::vector<std::string>& words,
                                                     const std::string& folder);

// A word as a shell takes it.
std::string Quoted(const std::string& word);

}  // namespace allranks::cli
