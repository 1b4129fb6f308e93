// Sources of a problem: template, edit region, candidates, mutants.
//
// A candidate is a whole file or only the region. What is compiled is always the template with the
// candidate's region put in, so nothing outside of it can be changed; a whole file whose other
// lines differ from the template's is an edit violation that names the first such line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "problem/problem.h"

namespace allranks::problem {

struct Region {
  std::string before, inside, after;  // lines with the markers belong to before and after
  int first_line = 1;                 // of `inside` in the template
};

Result<std::string> ReadFile(const std::filesystem::path& path, std::size_t limit = 1 << 20);
Result<Region> SplitTemplate(std::string_view text);
// The file to compile. Fails with an edit violation.
Result<std::string> Assemble(const Region& region, std::string_view candidate);

// The reference with one tag's operator applied. Tags stand at the end of a line:
//   atom.store(...);  //@publish
// Operators: drop (the line goes), relax, narrow, equal, ... (docs/problems.md lists them all).
Result<std::string> Mutate(const Problem& problem, const Mutant& mutant,
                           std::string_view reference);

}  // namespace allranks::problem
