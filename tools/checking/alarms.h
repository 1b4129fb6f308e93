// `checking alarms` and `checking exact`: see alarms.cpp and exact.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace allranks::checking {

struct Choice {
  std::string command = ALLRANKS_COMMAND;  // what is checked
  std::filesystem::path folder;            // what is done is kept there; empty: nowhere
  bool resume = false;                     // leave out what this build has done already
  bool write = false;                      // put the table into docs/checker.md
  bool all_cases = false;                  // all visible cases of a problem, not only one
  int seeds = 100;                         // schedules 0 to seeds
  bool each = false;                       // all of them for each run of a program
  int every = 1;                           // of the items only every so many-th,
  int part = 0;                            // from this one on
  std::vector<std::string> only;           // whose names contain one of these; empty: all
  int jobs = 1;                            // at a time
};

// Runs what is right and fails if something is found.
int Alarms(const std::filesystem::path& scratch, const Choice& choice);
// Judges wrong solutions again and again and fails if what is said of them differs.
int Exact(const std::filesystem::path& scratch, const Choice& choice, int runs);

}  // namespace allranks::checking
