// Words of --models and --problems, and what they stand for.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/entry.h"
#include "problem/problem.h"

namespace allranks::cli {

// Of --few-shot: more do not fit a prompt.
inline constexpr int kMostExamples = 16;

// At commas; a `command:` takes the rest, whose commas are its own.
std::vector<std::string> SplitModels(const std::string& words);

// `file`: as FindModelsFiles takes it.
Result<std::vector<model::Entry>> SelectModels(const std::vector<std::string>& words,
                                               const std::string& file);

// Of every folder that is searched, by slug; the first of two with the same slug. `folder`: as
// --problems-dir.
Result<std::vector<problem::Problem>> AllProblems(const std::string& folder);

// Slugs and paths, all, and selectors (category:C, level:L, library:L, family:F, parallelism:P) in
// any mixture; A+B is what both selectors select. Each problem once, in the order of the words and
// by slug within one.
Result<std::vector<problem::Problem>> SelectProblems(const std::vector<std::string>& words,
                                                     const std::string& folder);

// A word as a shell takes it.
std::string Quoted(const std::string& word);

}  // namespace allranks::cli
