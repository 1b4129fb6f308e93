// Sources of a problem: template, edit region, candidates, mutants.
//
// A folder without template.cu gets one made from problem.toml. Its solutions are whole files or
// regions, like every candidate.
//
// A candidate is a whole file or only the region. What is compiled is always the template with the
// candidate's region put in, so nothing outside of it can be changed; a whole file whose other
// lines differ from the template's is an edit violation that names the first such line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "problem/problem.h"

namespace allranks::problem {

inline constexpr std::size_t kLargestSource = 1 << 20;

struct Region {
  std::string before, inside, after;  // lines with the markers belong to before and after
  int first_line = 1;                 // of `inside` in the template
};

Result<std::string> ReadFile(const std::filesystem::path& path, std::size_t limit = kLargestSource);
// Behind the region there may be nothing, so that a #define in it reaches nothing of ours.
Result<Region> SplitTemplate(std::string_view text);
// The file to compile. Fails with an edit violation.
Result<std::string> Assemble(const Region& region, std::string_view candidate);

// template.cu, or what stands in its place: the title, problem.h and empty entry points.
Result<std::string> TemplateOf(const Problem& problem);
// Its parts.
Result<Region> RegionOf(const Problem& problem);
// A solution of the problem's folder ("alternates/pull.cu") as a whole file.
Result<std::string> SolutionOf(const Problem& problem, const std::filesystem::path& name);

// A solution with one tag's operator, one replacement or one patch applied, as a whole file. Tags
// stand at the end of a line:
//   atom.store(...);  //@publish
// docs/problems.md says what each operator does. One that changes nothing is an error.
Result<std::string> MutantOf(const Problem& problem, const Mutant& mutant);
// The same of a text that stands for the solution.
Result<std::string> Mutate(const Problem& problem, const Mutant& mutant, std::string_view text);

// The parts of Mutate: mutate.cpp and patch.cpp.
const std::vector<std::string>& Operators();
Result<std::string> ApplyOperator(std::string_view text, const std::string& tag,
                                  const std::string& op);
// A unified diff of one file; its places must fit exactly, at their lines or elsewhere.
Result<std::string> ApplyPatch(std::string_view text, std::string_view patch);

}  // namespace allranks::problem
