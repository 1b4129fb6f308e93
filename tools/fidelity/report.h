// What is told about a comparison: a table for people, docs/fidelity.md with its figure, JSON.
#pragma once

#include <string>

#include "fidelity/score.h"

namespace allranks::fidelity {

std::string JsonOf(const Points& points, const Score& score);
std::string TableOf(const Points& points, const Score& score);

// Writes `folder`/fidelity.md (the prose of `notes` and the tables) and fidelity.svg by gnuplot.
Result<void> WriteDocs(const Points& points, const Score& score, const std::string& notes,
                       const std::string& folder);

}  // namespace allranks::fidelity
