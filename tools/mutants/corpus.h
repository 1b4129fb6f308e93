// All mutants of a tree of problems: every reference and alternate, every place, every operator;
// which of them do the same as their original, with the reason (tests/mutants/equivalent.tsv); and
// the ones written by hand (tests/mutants/blind).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace allranks::mutants {

struct Mutant {
  std::string id;       // collective/allreduce_one_shot/reference.cu:73:drop_barrier
  std::string problem;  // slug
  std::string op;       // drop_barrier
  std::string text;     // the whole candidate
  std::filesystem::path original;
};

// In the order of their ids' files and places, the same every time.
Result<std::vector<Mutant>> SeedProblems(const std::filesystem::path& problems);

// The patches and solutions of FOLDER/SLUG, op "by_hand"; tests/mutants/blind/README.md has the
// form. Those of programs are no candidates and left out.
Result<std::vector<Mutant>> ReadByHand(const std::filesystem::path& folder,
                                       const std::filesystem::path& problems);

// The folder of its problem.
std::filesystem::path HomeOf(const Mutant& mutant);

// id -> why it does the same as its original. Lines of `ID<tab>REASON`; # begins a comment.
Result<std::map<std::string, std::string>> ReadEquivalent(const std::filesystem::path& file);

}  // namespace allranks::mutants
