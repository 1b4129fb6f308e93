// What has passed, and what it passed with: a file that is kept with problems or candidates, so
// that none is judged again while nothing it depends on changes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace allranks::cli {

// SHA-256 of everything that an outcome depends on. The compiler is not part of it: another nvcc is
// another check.
struct CheckKey {
  std::string files;    // what a problem's folder has for the judge, and what else the caller names
  std::string sources;  // of node, judge and what lies between
  bool operator==(const CheckKey&) const = default;
};

class CheckRecord {
 public:
  enum class Standing {
    kNone,   // it has not passed with these files
    kOlder,  // it has, judged by other sources
    kHolds,  // it has, by these sources
  };

  // A missing file is an empty record.
  static Result<CheckRecord> Load(const std::filesystem::path& file);
  Status Store(const std::filesystem::path& file) const;

  void Passed(const std::string& name, const CheckKey& key) { keys_[name] = key; }
  void Forget(const std::string& name) { keys_.erase(name); }
  Standing Of(const std::string& name, const CheckKey& key) const;

 private:
  std::map<std::string, CheckKey> keys_;  // by name
};

// The SHA-256 of the sources of node and judge that this program was built from.
std::string_view JudgingSources();
// `beside` is what the outcome depends on beside the problem and the judge.
Result<CheckKey> KeyOfProblem(const std::filesystem::path& problem, std::string_view beside);
// Its two steps, for many keys of one problem: what is in the folder, but for what only prompts
// show, and the key.
Result<std::string> FilesOf(const std::filesystem::path& problem);
CheckKey KeyOf(std::string_view files, std::string_view beside);

// Whether what is unchanged is judged all the same: each is, on one of every `period` days.
bool InSample(std::string_view name, std::int64_t day, int period);
// Days since 1970.
std::int64_t Today();

}  // namespace allranks::cli
