#include "common/unchanged.h"

#include <fmt/format.h>

#include <utility>

#include "problem/problem.h"

namespace allranks::tools {
namespace fs = std::filesystem;

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
  const Result<std::string> files = FilesOf(problem);
  if (!files) return Fail("{}: {}", name, files.error().message);
  const std::string key = keys_[name] = cli::KeyOf(*files, about);
  if (!changed_ || !known_.Holds(name, key)) return false;
  if (cli::InSample(name, cli::Today(), sample_)) {
    ++sampled_;
    return false;
  }
  ++left_out_;
  return true;
}

Result<std::string> Unchanged::FilesOf(const std::string& problem) {
  if (const auto known = files_.find(problem); known != files_.end()) return known->second;
  for (const fs::path& folder : problem::Find(fs::path(ALLRANKS_SOURCE_DIR) / "problems")) {
    if (folder.filename() != problem) continue;
    const Result<std::string> files = cli::FilesOf(folder);
    if (files) files_[problem] = *files;
    return files;
  }
  return Fail("there is no problem '{}'", problem);
}

void Unchanged::Note(const std::string& name, bool good) {
  const std::lock_guard lock(mutex_);
  const auto key = keys_.find(name);
  if (good && key != keys_.end()) {
    known_.Passed(name, key->second);
  } else {
    known_.Forget(name);
  }
  // A run of many candidates that is cut off keeps what it has; Store() reports a failure to write.
  if (record_) (void)known_.Store(file_);
}

Status Unchanged::Store() {
  if (changed_)
    fmt::print("{} unchanged since they passed, not judged; {} unchanged, judged as a sample\n",
               left_out_, sampled_);
  return record_ ? known_.Store(file_) : Ok();
}

}  // namespace allranks::tools
