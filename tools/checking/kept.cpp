// See kept.h.
#include "checking/kept.h"

#include <fmt/format.h>

#include <sstream>

#include "base/files.h"
#include "common/build.h"
#include "common/document.h"
#include "common/run.h"

namespace allranks::checking {

namespace fs = std::filesystem;

Kept::Kept(const fs::path& folder, const fs::path& command, bool resume)
    : command_(command), build_(tools::BuildOf(command)), dates_(tools::DatesOf(command)) {
  if (folder.empty()) return;
  fs::create_directories(folder);
  file_ = folder / (build_ + ".jsonl");
  if (!resume) return;  // what comes later counts
  std::istringstream lines(tools::ReadText(file_));
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

bool Kept::Add(const std::string& key, const Json& result) {
  if (tools::DatesOf(command_) != dates_) return false;
  const std::lock_guard lock(mutex_);
  results_[key] = result;
  if (file_.empty()) return true;
  if (const Status added = AppendLine(file_, Json{{"key", key}, {"result", result}}.dump()); !added)
    fmt::print(stderr, "{}: {}\n", file_.string(), added.error().message);
  return true;
}

bool WriteInto(const std::string& name, const std::string& text) {
  const Result<bool> written =
      tools::PutBetween(fmt::format("<!-- {0}: written by `checking {0} --write` -->\n", name),
                        fmt::format("<!-- {}: end -->", name), text,
                        fs::path(ALLRANKS_SOURCE_DIR) / "docs/checker.md", /*write=*/true);
  if (!written) fmt::print(stderr, "{}\n", written.error().message);
  return written.has_value();
}

}  // namespace allranks::checking
