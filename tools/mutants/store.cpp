// See store.h.
#include "mutants/store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "common/build.h"
#include "common/run.h"

namespace allranks::mutants {

namespace fs = std::filesystem;

namespace {

using tools::Hash;

std::string ContextOf(const Mutant& mutant) {
  std::vector<fs::path> files;
  if (IsProgram(mutant)) {
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(ALLRANKS_SOURCE_DIR) / "tests/programs"))
      if (entry.path().extension() == ".h") files.push_back(entry.path());
  } else {
    for (const char* name : {"problem.toml", "template.cu", "oracle.cpp", "reference.lock"})
      files.push_back(HomeOf(mutant) / name);
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(ALLRANKS_SOURCE_DIR) / "include"))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Hash hash;
  for (const fs::path& file : files) hash.Add(tools::ReadText(file));
  return hash.Text().substr(0, 8);
}

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kOutputs:
      return "outputs";
    case Kind::kChecked:
      return "checked";
    case Kind::kOriginal:
      return "original";
  }
  return "";
}

}  // namespace

bool Caught(const Verdict& verdict) {
  // No sown bug tampers or asks for what is forbidden: such a word is the judge's own trouble.
  static const std::set<std::string> kNot = {"",           "pass",           "none",
                                             "tampering",  "edit_violation", "forbidden_api",
                                             "impossible", "unsupported",    "internal_error"};
  return !kNot.contains(verdict.word);
}

bool Failed(const Verdict& verdict) {
  return !verdict.word.empty() && verdict.word != "pass" && !Caught(verdict);
}

Verdict ParseVerdict(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return {.word = "none", .text = text.substr(0, 200)};
  const auto by = json.find("shown_by");
  return {json.value("verdict", "none"), json.value("text", ""),
          by != json.end() && by->is_string() ? by->get<std::string>() : ""};
}

Store::Store(fs::path folder, const fs::path& command, bool reuse_outputs, bool reuse_all)
    : folder_(std::move(folder)),
      command_(command),
      build_(tools::BuildOf(command)),
      dates_(tools::DatesOf(command)),
      reuse_outputs_(reuse_outputs || reuse_all),
      reuse_all_(reuse_all) {}

fs::path Store::Tail(const Mutant& mutant) {
  const std::scoped_lock lock(mutex_);
  std::string& context = contexts_[mutant.problem];
  if (context.empty()) context = ContextOf(mutant);
  Hash hash;
  hash.Add(mutant.problem + "\n" + mutant.text);
  for (const std::string& word : mutant.arguments) hash.Add("\n" + word);
  return fs::path(mutant.problem + "-" + context) / (hash.Text() + ".json");
}

fs::path Store::PathOf(const Mutant& mutant, const std::string& subject) {
  const fs::path path = (folder_ / subject / Tail(mutant)).replace_extension();
  fs::create_directories(path.parent_path());
  return path;
}

Verdict Store::Find(const Mutant& mutant, Kind kind) {
  const fs::path tail = fs::path(NameOf(kind)) / Tail(mutant);
  fs::path best = folder_ / build_ / tail;
  const bool mine = fs::exists(best);
  if (!mine && (kind == Kind::kOutputs ? reuse_outputs_ : reuse_all_)) {
    std::error_code none;
    fs::file_time_type newest = fs::file_time_type::min();
    for (const auto& build : fs::directory_iterator(folder_, none)) {
      const fs::path path = build.path() / tail;
      if (!fs::exists(path) || fs::last_write_time(path) <= newest) continue;
      newest = fs::last_write_time(path);
      best = path;
    }
  }
  if (!fs::exists(best)) return {};
  Verdict verdict = ParseVerdict(tools::ReadText(best));
  verdict.other_build = !mine;
  return verdict;
}

bool Store::Keep(const Mutant& mutant, Kind kind, const std::string& json) {
  if (tools::DatesOf(command_) != dates_) return false;
  const fs::path path = folder_ / build_ / NameOf(kind) / Tail(mutant);
  fs::create_directories(path.parent_path());
  const fs::path part = Scratch() / "verdict";
  std::ofstream(part, std::ios::binary) << json;
  fs::rename(part, path);  // at once: who is cut leaves no half of a verdict
  fs::remove(part.parent_path());
  return true;
}

fs::path Store::Scratch() {
  const std::scoped_lock lock(mutex_);
  const fs::path folder = folder_ / fmt::format("run.{}.{}", getpid(), scratches_++);
  fs::create_directories(folder);
  return folder;
}

}  // namespace allranks::mutants
