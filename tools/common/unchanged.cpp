#include "common/unchanged.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "problem/problem.h"

namespace allranks::tools {
namespace fs = std::filesystem;
using Standing = cli::CheckRecord::Standing;

// Days in which each is judged that passed by other sources of the judge.
constexpr int kOlderPeriod = 8;

void Unchanged::AddOptions(CLI::App& app) {
  app.add_flag("--changed", changed_, "leave out what is unchanged since it passed (see --record)");
  app.add_option("--sample", sample_,
                 "with --changed: judge an unchanged one on one of N days (of 8 if the judge has "
                 "changed); 0: never, but all that passed with another judge")
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
  const cli::CheckKey key = keys_[name] = cli::KeyOf(*files, about);
  const Standing standing = known_.Of(name, key);
  if (!changed_ || standing == Standing::kNone) return false;
  const bool older = standing == Standing::kOlder;
  if (older && sample_ == 0) return false;
  older_ += older;
  const int period = older ? std::min(sample_, kOlderPeriod) : sample_;
  if (cli::InSample(name, cli::Today(), period)) {
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
    fmt::print(
        "{} unchanged since they passed, not judged; {} unchanged, judged as a sample; {} of these "
        "passed by older sources of the judge\n",
        left_out_, sampled_, older_);
  return record_ ? known_.Store(file_) : Ok();
}

}  // namespace allranks::tools
