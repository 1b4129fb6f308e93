// The hostile candidates of tests/attacks: one file each, whose first lines say what it tries.
//
//   // tries: what it does, in a sentence
//   // rows: 8 C2 H22        known attacks that it stands for (docs/trust.md lists them)
//   // verdict: crash|tampering     what it must get: one of these. pass: harmless, graded normally
//   // cases: all            visible ones only unless it says so
//   // drained: pass         what it must get if each call begins when all ranks are at rest
//   // problem: SLUG         allreduce_one_shot unless it says otherwise
//   // with: honest.inc      text of this file comes first
//   // at most: NAME         a pass must not score more than this one by more than 3 %: the name of
//   //                       another candidate of the folder, or `reference`
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace allranks::attacks {

struct Attack {
  std::string name, tries;
  std::vector<std::string> rows, verdicts;
  bool all_cases = false;
  std::string drained;  // empty: not asked
  std::string at_most;  // empty: any score
  std::string problem = "allreduce_one_shot";
  std::string text;  // the candidate
};

allranks::Result<std::vector<Attack>> ReadCorpus(const std::filesystem::path& folder);

}  // namespace allranks::attacks
