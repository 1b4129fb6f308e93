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

class CheckRecord {
 public:
  // A missing file is an empty record.
  static Result<CheckRecord> Load(const std::filesystem::path& file);
  Status Store(const std::filesystem::path& file) const;

  void Passed(const std::string& name, const std::string& key) { keys_[name] = key; }
  void Forget(const std::string& name) { keys_.erase(name); }
  bool Holds(const std::string& name, const std::string& key) const;
  std::size_t size() const { return keys_.size(); }

 private:
  std::map<std::string, std::string> keys_;  // by name
};

// SHA-256 of everything that an outcome depends on: all files of a problem's folder, the sources of
// node, judge and what lies between, and what else the caller names in `beside`. The compiler is
// not part of it: another nvcc is another check.
Result<std::string> CheckKey(const std::filesystem::path& problem, std::string_view beside);
// Its two steps, for many keys of one problem: what is in the folder, and the key.
Result<std::string> FilesOf(const std::filesystem::path& problem);
std::string KeyOf(std::string_view files, std::string_view beside);

// Whether what is unchanged is judged all the same: each is, on one of every `period` days.
bool InSample(std::string_view name, std::int64_t day, int period);
// Days since 1970.
std::int64_t Today();

}  // namespace allranks::cli
