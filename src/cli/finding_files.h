// The files that `exec --check --findings FILE` writes: findings for other programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/finding.h"

namespace allranks::cli {

enum class FindingFormat {
  kText,   // what is printed
  kJson,   // all that is known; docs/checker.md has the members
  kSarif,  // SARIF 2.1.0, what code hosts show beside the lines of a change
  kJunit,  // a test suite, in which every finding is a test that fails
};

// "text", "json", "sarif", "junit".
std::optional<FindingFormat> FormatNamed(std::string_view name);
// By the file's name: .sarif, .xml and .txt; all else is JSON.
FindingFormat FormatOfFile(std::string_view path);

// A finding of a list, and what the list's options make of it.
struct ListedFinding {
  node::Finding finding;
  std::string id;
  bool counts = false, suppressed = false;
};

// The run or the runs that the findings are of.
struct FindingRun {
  // The program failed, by itself or by a deadlock.
  struct Failure {
    std::uint64_t schedule = 0;
    int code = 0;        // its exit code, or that of a deadlock
    std::string text;    // for a person
    bool fault = false;  // the program ended well, but a kernel or a copy of it failed
  };
  std::vector<std::string> command;
  std::vector<std::uint64_t> schedules;  // the first one first
  std::vector<Failure> failures;
  int code = 0;         // what exec returns
  std::string version;  // of this program
};

std::string FindingsAsJson(const FindingRun& run, const std::vector<ListedFinding>& findings);
std::string FindingsAsSarif(const FindingRun& run, const std::vector<ListedFinding>& findings);
std::string FindingsAsJunit(const FindingRun& run, const std::vector<ListedFinding>& findings);

}  // namespace allranks::cli
