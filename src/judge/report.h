// A judgement for people (a table) and for machines (JSON). docs/judge.md describes the JSON; a
// field that changes its meaning is a new kReportSchema.
#pragma once

#include <string>

#include "judge/judge.h"

namespace allranks::judge {

inline constexpr int kReportSchema = 1;

// One line. Everything but "cost" is the same for the same candidate, seed, profile and version.
std::string ToJson(const problem::Problem& problem, const Judgement& judgement);

std::string ToTable(const problem::Problem& problem, const Judgement& judgement);

// Two judgements case by case; `a` and `b` are their names.
std::string ToComparison(const problem::Problem& problem, const std::string& a,
                         const Judgement& judgement_a, const std::string& b,
                         const Judgement& judgement_b);

}  // namespace allranks::judge
