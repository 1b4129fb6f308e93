// Which problems have passed `problems check` as a whole, and what they passed with: a file that is
// kept with the problems, so that a problem is not judged again while nothing it depends on
// changes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "problem/problem.h"

namespace allranks::cli {

class CheckRecord {
 public:
  // A missing file is an empty record.
  static Result<CheckRecord> Load(const std::filesystem::path& file);
  Status Store(const std::filesystem::path& file) const;

  void Passed(const std::string& slug, const std::string& key) { keys_[slug] = key; }
  void Forget(const std::string& slug) { keys_.erase(slug); }
  bool Holds(const std::string& slug, const std::string& key) const;
  std::size_t size() const { return keys_.size(); }

 private:
  std::map<std::string, std::string> keys_;  // by slug
};

// SHA-256 of everything that a check's outcome depends on: all files of the problem's folder, the
// profile's name, and the sources of node, judge and what lies between (`sources`). The compiler is
// not part of it: another nvcc is another check.
Result<std::string> CheckKey(const problem::Problem& problem, std::string_view profile,
                             std::string_view sources);
// The sources that this command was built from.
std::string_view JudgingSources();

// Whether an unchanged problem is judged all the same: each is, on one of every `period` days.
bool InSample(std::string_view slug, std::int64_t day, int period);

}  // namespace allranks::cli
