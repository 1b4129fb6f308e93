// What chains of one run write, and judgements that they share.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/stop.h"
#include "campaign/executor.h"

namespace allranks::campaign {

// The files of a run; paths are below its folder.
class Store {
 public:
  Store(std::filesystem::path folder,
        std::function<Status(const std::filesystem::path&)> before_write)
      : folder_(std::move(folder)), before_write_(std::move(before_write)) {}

  const std::filesystem::path& folder() const { return folder_; }
  // True also if that cannot be known: reading it will say why.
  bool Has(const std::filesystem::path& path) const;
  Result<std::string> Read(const std::filesystem::path& path) const;
  Status Write(const std::filesystem::path& path, std::string_view bytes) const;
  // A file that the run does not need; nobody is told if it cannot be removed.
  void Remove(const std::filesystem::path& path) const;
  // log.txt, with the time. What cannot be logged is lost.
  void Log(const std::string& line) const;

 private:
  const std::filesystem::path folder_;
  const std::function<Status(const std::filesystem::path&)> before_write_;
};

// Only one process works on a run. Held as long as this object lives; a killed process lets go.
class RunLock {
 public:
  static Result<RunLock> Take(const std::filesystem::path& folder);
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();

 private:
  explicit RunLock(int fd) : fd_(fd) {}
  int fd_;
};

// Judgements by content. Chains that need the same one at the same time wait for one of them.
class Judgements {
 public:
  Judgements(const Store* store, Executor* executor) : store_(store), executor_(executor) {}

  // An internal_error is given to who asked and not kept: another day it may be judged.
  // `key`: hash of all that the judgement depends on. `trace`: judged/KEY.trace.json is made, too.
  Result<std::string> Get(const std::string& key, JudgeTask task, bool trace, const Stop& stop);

  static std::filesystem::path PathOf(const std::string& key);
  static std::filesystem::path TraceOf(const std::string& key);

 private:
  const Store* store_;
  Executor* executor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> under_way_;
};

}  // namespace allranks::campaign
