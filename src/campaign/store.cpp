#include "campaign/store.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "campaign/talk.h"

namespace allranks::campaign {

namespace fs = std::filesystem;

bool Store::Has(const fs::path& path) const {
  std::error_code error;
  return fs::exists(folder_ / path, error) || error;
}

Result<std::string> Store::Read(const fs::path& path) const { return ReadWhole(folder_ / path); }

Status Store::Write(const fs::path& path, std::string_view bytes) const {
  if (before_write_) {
    if (const Status may = before_write_(path); !may) return may;
  }
  return WriteWhole(folder_ / path, bytes);
}

void Store::Remove(const fs::path& path) const {
  std::error_code ignored;
  fs::remove(folder_ / path, ignored);
}

void Store::Log(const std::string& line) const {
  std::string one = line;
  std::replace(one.begin(), one.end(), '\n', ' ');
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  (void)AppendLine(folder_ / "log.txt", fmt::format("{:%FT%TZ} {}", fmt::gmtime(now), one));
}

Result<RunLock> RunLock::Take(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Fail("cannot create the folder {}: {}", folder.string(), error.message());
  const fs::path path = folder / "lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return Fail("cannot write {}: {}", path.string(), std::strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return RunLock(fd);
  const int why = errno;
  close(fd);
  if (why == EWOULDBLOCK)
    return Fail("another process works on {}: wait for it, stop it, or choose another --out",
                folder.string());
  return Fail("cannot lock {}: {}", path.string(), std::strerror(why));
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RunLock::~RunLock() {
  if (fd_ >= 0) close(fd_);
}

fs::path Judgements::PathOf(const std::string& key) { return fs::path("judged") / (key + ".json"); }

fs::path Judgements::TraceOf(const std::string& key) {
  return fs::path("judged") / (key + ".trace.json");
}

Result<std::string> Judgements::Get(const std::string& key, JudgeTask task, bool trace,
                                    const Stop& stop) {
  {
    std::unique_lock lock(mutex_);
    while (!stop.requested() && under_way_.contains(key))
      changed_.wait_for(lock, std::chrono::milliseconds(200));  // woken when it is there
    if (stop.requested()) return Fail("stopped");
    if (store_->Has(PathOf(key))) return store_->Read(PathOf(key));
    under_way_.insert(key);
  }
  if (trace) {
    std::error_code error;
    fs::create_directories(store_->folder() / "judged", error);
    task.trace = store_->folder() / TraceOf(key);
  }
  Result<std::string> judgement = executor_->Judge(task, stop);
  // Where it cannot be written, the chain's own copy will say so.
  if (judgement && !IsInternal(*judgement)) (void)store_->Write(PathOf(key), *judgement);
  {
    const std::lock_guard lock(mutex_);
    under_way_.erase(key);
  }
  changed_.notify_all();
  return judgement;
}

}  // namespace allranks::campaign
