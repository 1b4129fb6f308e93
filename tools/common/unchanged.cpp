#include "common/unchanged.h"

#include <fmt/format.h>

#include <utility>

namespace allranks::tools {
namespace {

namespace fs = std::filesystem;

// The folder of a problem; empty: there is none of this name.
fs::path FolderOf(const std::string& problem) {
  std::error_code error;
  for (const fs::directory_entry& category :
       fs::directory_iterator(fs::path(ALLRANKS_SOURCE_DIR) / "problems", error)) {
    if (fs::exists(category.path() / problem / "problem.toml", error))
      return category.path() / problem;
  }
  return {};
}

}  // namespace

void Unchanged::AddOptions(CLI::App& app) {
  app.add_flag("--changed", changed_, "leave out what is unchanged since it passed (see --record)");
  app.add_option("--sample", sample_,
                 "with --changed: judge an unchanged one on one of N days; 0: never")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--record", record_, "record which candidates got what they should");
}

Status Unchanged::Load(const fs::path& file) {
  file_ = file;
  auto known = cli::CheckRecord::Load(file);
  if (!known) return Fail(known.error());
  known_ = std::move(*known);
  return Ok();
}

Result<bool> Unchanged::LeaveOut(const std::string& name, const std::string& problem,
                                 std::string_view about) {
  if (!changed_ && !record_) return false;
  const fs::path folder = FolderOf(problem);
  if (folder.empty()) return Fail("{}: there is no problem '{}'", name, problem);
  const auto key = cli::CheckKey(folder, about);
  if (!key) return Fail(key.error());
  keys_[name] = *key;
  if (!changed_ || !known_.Holds(name, *key)) return false;
  if (cli::InSample(name, cli::Today(), sample_)) {
    ++sampled_;
    return false;
  }
  ++left_out_;
  return true;
}

void Unchanged::Note(const std::string& name, bool good) {
  const std::lock_guard lock(mutex_);
  const auto key = keys_.find(name);
  if (good && key != keys_.end()) {
    known_.Passed(name, key->second);
  } else {
    known_.Forget(name);
  }
}

Status Unchanged::Store() {
  if (changed_)
    fmt::print("{} unchanged since they passed, not judged; {} unchanged, judged as a sample\n",
               left_out_, sampled_);
  return record_ ? known_.Store(file_) : Ok();
}

}  // namespace allranks::tools
