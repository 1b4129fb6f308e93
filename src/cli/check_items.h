// What `allranks problems check` runs of one problem: every source of its folder and every mutant,
// each with the verdict that it must get. Part of problems_check.cpp.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "judge/judge.h"
#include "problem/problem.h"

namespace allranks::cli {

struct CheckItem {
  enum class Kind {
    kReference,
    kRepeat,
    kBaseline,
    kNccl,
    kAlternate,
    kTemplate,
    kControl,
    kMutant
  };
  Kind kind = Kind::kReference;
  std::string name;      // "mutant publish.relax"
  std::string source;    // for the judge
  std::string expected;  // a verdict; "fail" for any that is the candidate's own
  bool needs_checker = false;
  std::string error;  // why there is no source

  judge::Judgement judgement;  // once it has run
  bool ran = false;
  bool good = false;
  std::string because;  // why it is not good
};

// All items, the slowest to judge first. What is missing in the folder is added to `faults`.
std::vector<CheckItem> ItemsOf(const problem::Problem& problem, std::vector<std::string>* faults);

// Decides on one that has run.
void Decide(const problem::Problem& problem, CheckItem* item);

// What is different in two judgements of the same candidate and seed, apart from their cost.
std::string Difference(const judge::Judgement& a, const judge::Judgement& b);

}  // namespace allranks::cli
