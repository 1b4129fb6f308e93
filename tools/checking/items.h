// What `checking` runs: solutions of problems that are right, and the programs of tests/programs.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace allranks::checking {

// A solution (problem and source), or a command that `allranks exec` is given.
struct Item {
  std::string name;
  std::string group;  // what it is one of
  std::filesystem::path problem, source;
  std::string one_case;              // of the problem: visible, see CaseOf
  std::vector<std::string> command;  // options of `exec`, --, program, arguments
  std::vector<std::string> environment;
  std::set<std::string> finds;  // kinds of findings that the program brings about on purpose
  std::string skipped;          // why it is not run
  int shares = 1;               // runs of its program that there are
};

// References, baselines and alternates.
std::vector<Item> Solutions();
// Whole solutions among the bugs of tests/mutants/blind.
std::vector<Item> WrongSolutions();
// The tests of tests/programs that run `allranks exec`, as ctest knows them: those
// that are built.
std::vector<Item> Programs(const std::filesystem::path& scratch);

// Whether its name contains one of these; none: yes.
bool IsNamed(const Item& item, const std::vector<std::string>& parts);
// Changes with the files that decide what is run: the source and its problem, or the programs.
std::string ContentOf(const Item& item);
// Judges an item in its one case, or in all visible ones, and prints JSON.
std::vector<std::string> JudgeCommand(const Item& item, const std::string& allranks,
                                      const std::string& seed, bool all_cases);

}  // namespace allranks::checking
