// A run as models of different strength would leave it, made up from a seed: every verdict, several
// rounds, and the files that a page shows. For tests of reports, which look at it by eye too.
#pragma once

#include <filesystem>

#include "campaign/record.h"

namespace allranks::report {

struct Shape {
  int models = 6, problems = 20, samples = 3, rounds = 3;
  int source_lines = 40;  // of a solution, about
  bool files = true;      // the texts
  std::uint64_t seed = 1;
};

// Writes the run's texts below `folder`; records (run.json, sample.json) are not written.
campaign::Run MakeRun(const std::filesystem::path& folder, const Shape& shape);

}  // namespace allranks::report
