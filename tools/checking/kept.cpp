// See kept.h.
#include "checking/kept.h"

#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <sstream>

#include "base/files.h"
#include "checking/run.h"
#include "problem/lock.h"

namespace allranks::checking {

namespace fs = std::filesystem;

Kept::Kept(const fs::path& folder, const fs::path& command, bool resume) {
  if (folder.empty()) return;
  fs::create_directories(folder);
  file_ = folder / (problem::HashOf(ReadText(command)) + ".jsonl");
  if (!resume) return;  // what comes later counts
  std::istringstream lines(ReadText(file_));
  for (std::string line; std::getline(lines, line);) {
    Json json = Json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("key") && json.contains("result"))
      results_[json["key"].get<std::string>()] = std::move(json["result"]);
  }
}

std::optional<Json> Kept::Find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = results_.find(key);
  return found == results_.end() ? std::nullopt : std::optional(found->second);
}

void Kept::Add(const std::string& key, const Json& result) {
  const std::lock_guard lock(mutex_);
  results_[key] = result;
  if (file_.empty()) return;
  if (const Status added = AppendLine(file_, Json{{"key", key}, {"result", result}}.dump()); !added)
    fmt::print(stderr, "{}: {}\n", file_.string(), added.error().message);
}

bool WriteInto(const std::string& name, const std::string& text) {
  const fs::path doc = fs::path(ALLRANKS_SOURCE_DIR) / "docs/checker.md";
  const std::string first = fmt::format("<!-- {0}: written by `checking {0} --write` -->\n", name);
  std::string all = ReadText(doc);
  const std::size_t begin = all.find(first), end = all.find(fmt::format("<!-- {}: end -->", name));
  if (begin == std::string::npos || end == std::string::npos) {
    fmt::print(stderr, "docs/checker.md has no place for `{}`\n", name);
    return false;
  }
  all.replace(begin, end - begin, first + text);
  std::ofstream(doc, std::ios::binary) << all;
  return true;
}

std::string Today() {
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%F", std::gmtime(&now));
  return date;
}

}  // namespace allranks::checking
