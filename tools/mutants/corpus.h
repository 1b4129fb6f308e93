// All mutants of a tree of problems: every reference and alternate, every place, every operator;
// which of them do the same as their original, with the reason (tests/mutants/equivalent.tsv); and
// the ones written by hand (tests/mutants/blind), some of which are of tests/programs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "problem/source.h"

namespace allranks::mutants {

struct Mutant {
  std::string id;       // collective/allreduce_one_shot/reference.cu:73:drop_barrier
  std::string problem;  // slug; kPrograms: it is a program, not a candidate
  std::string op;       // drop_barrier
  std::string text;     // the whole candidate or program
  std::filesystem::path original;
  std::vector<std::string> arguments;  // of a program
  std::vector<std::string> expected;   // by hand: the verdicts that its author calls right
};

inline constexpr char kByHand[] = "by_hand";     // an op
inline constexpr char kPrograms[] = "programs";  // a problem
inline bool IsProgram(const Mutant& mutant) { return mutant.problem == kPrograms; }

// The file that the judge compiles, of which a solution of the problem in `home` is a region.
Result<problem::Region> RegionAt(const std::filesystem::path& home);

// Of the problems that have a folder in `by_hand`, in the order of their ids' files and places, the
// same every time.
Result<std::vector<Mutant>> SeedProblems(const std::filesystem::path& problems,
                                         const std::filesystem::path& by_hand);

// The patches and solutions of FOLDER/SLUG and FOLDER/programs, op kByHand;
// tests/mutants/blind/README.md has the form. Fails with a line for each one that does not fit its
// original any more.
Result<std::vector<Mutant>> ReadByHand(const std::filesystem::path& folder,
                                       const std::filesystem::path& problems,
                                       const std::filesystem::path& programs);

// The source that it was made of, in its place.
Result<Mutant> OriginalOf(const Mutant& mutant);

// The folder of its problem.
std::filesystem::path HomeOf(const Mutant& mutant);

// id -> why it does the same as its original. Lines of `ID<tab>REASON`; # begins a comment.
Result<std::map<std::string, std::string>> ReadEquivalent(const std::filesystem::path& file);

}  // namespace allranks::mutants
