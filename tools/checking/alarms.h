// `checking alarms` and `checking exact`: see alarms.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace allranks::checking {

struct Choice {
  bool all_cases = false;         // all visible cases of a problem, not only one
  int seeds = 100;                // schedules 0 to seeds
  int every = 1;                  // of the items only every so many-th,
  int part = 0;                   // from this one on
  std::vector<std::string> only;  // whose names contain one of these; empty: all
  int jobs = 1;                   // at a time
};

// Runs what is right and fails if something is found.
int Alarms(const std::filesystem::path& folder, const Choice& choice);
// Judges wrong solutions again and again and fails if findings differ.
int Exact(const std::filesystem::path& folder, int runs, const std::string& only);

}  // namespace allranks::checking
