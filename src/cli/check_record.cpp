#include "cli/check_record.h"

#include <fmt/format.h>
#include <source_hash.inc>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/sha256.h"
#include "problem/lock.h"

namespace allranks::cli {
namespace {

constexpr int kVersion = 2;

}  // namespace

Result<CheckRecord> CheckRecord::Load(const std::filesystem::path& file) {
  CheckRecord record;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return record;
  const Result<std::string> text = ReadWhole(file);
  if (!text) return Fail(text.error());
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("version", 0) != kVersion || !json.contains("passed") ||
      !json["passed"].is_object())
    return Fail("{} is not a record of checks; remove it to start a new one", file.string());
  for (const auto& [name, key] : json["passed"].items()) {
    if (!key.is_object() || !key.contains("files") || !key["files"].is_string() ||
        !key.contains("sources") || !key["sources"].is_string())
      continue;
    record.keys_[name] = {.files = key["files"].get<std::string>(),
                          .sources = key["sources"].get<std::string>()};
  }
  return record;
}

Status CheckRecord::Store(const std::filesystem::path& file) const {
  nlohmann::json passed = nlohmann::json::object();
  for (const auto& [name, key] : keys_)
    passed[name] = {{"files", key.files}, {"sources", key.sources}};
  const nlohmann::json json = {{"version", kVersion}, {"passed", std::move(passed)}};
  return WriteWhole(file, json.dump(2) + "\n");
}

CheckRecord::Standing CheckRecord::Of(const std::string& name, const CheckKey& key) const {
  const auto found = keys_.find(name);
  if (found == keys_.end() || found->second.files != key.files) return Standing::kNone;
  return found->second.sources == key.sources ? Standing::kHolds : Standing::kOlder;
}

Result<std::string> FilesOf(const std::filesystem::path& problem) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (auto entry = std::filesystem::recursive_directory_iterator(problem, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    const bool prompt = name == "statement.md" || name == "operation.py";
    if (entry->is_regular_file(error) && !prompt) files.push_back(entry->path());
  }
  if (error) return Fail("cannot read {}: {}", problem.string(), error.message());
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::filesystem::path& file : files) {
    const Result<std::string> text = ReadWhole(file);
    if (!text) return Fail(text.error());
    const bool toml = file.filename() == "problem.toml";
    all += fmt::format("{} {}\n", Hex(Sha256(toml ? problem::Deciding(*text) : *text)),
                       file.lexically_relative(problem).generic_string());
  }
  return all;
}

std::string_view JudgingSources() { return kJudgingSources; }

CheckKey KeyOf(std::string_view files, std::string_view beside) {
  return {.files = Hex(Sha256(fmt::format("{}\n{}", Hex(Sha256(beside)), files))),
          .sources = kJudgingSources};
}

Result<CheckKey> KeyOfProblem(const std::filesystem::path& problem, std::string_view beside) {
  const Result<std::string> files = FilesOf(problem);
  if (!files) return Fail(files.error());
  return KeyOf(*files, beside);
}

bool InSample(std::string_view name, std::int64_t day, int period) {
  if (period <= 0) return false;
  const Sha256Digest digest = Sha256(name);
  return (day + digest[0] + 256 * digest[1]) % period == 0;
}

std::int64_t Today() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::days>(since).count();
}

}  // namespace allranks::cli
