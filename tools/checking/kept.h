// What `checking` has run with a build of `allranks`: a line of JSON for each, in a file that is
// named by the build. A run that was broken off, or that one only wants to see written down, goes
// on there.
#pragma once

#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>

namespace allranks::checking {

using Json = nlohmann::ordered_json;

class Kept {
 public:
  // No folder: nothing is kept. Not `resume`: what this build has done is done again.
  Kept(const std::filesystem::path& folder, const std::filesystem::path& command, bool resume);

  // Of all that says what was done: its source, its cases, how often. Threads may share this.
  std::optional<Json> Find(const std::string& key) const;
  // False: the command was built anew meanwhile, and nobody knows which one has done this.
  [[nodiscard]] bool Add(const std::string& key, const Json& result);
  // The first digits of its hash.
  const std::string& build() const { return build_; }

 private:
  std::filesystem::path command_, file_;
  std::string build_, dates_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Json> results_;
};

// Puts `text` between the lines "<!-- NAME: written by `checking NAME --write` -->" and
// "<!-- NAME: end -->" of docs/checker.md.
bool WriteInto(const std::string& name, const std::string& text);

}  // namespace allranks::checking
