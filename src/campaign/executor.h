// Who carries out judgements: processes of this program on this machine, later jobs of a cluster.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop.h"

namespace allranks::campaign {

struct JudgeTask {
  std::filesystem::path problem;  // its folder
  std::string source;             // the candidate
  std::string profile;            // path
  std::string seed;
  int band = 0;
  bool visible = false;         // visible cases only: the tool of a command
  std::filesystem::path trace;  // empty: none
  // Called when its turn has come. May be empty.
  std::function<void()> on_start;
  // Told, before it is done once more, why a judgement was of no use. May be empty.
  std::function<void(const std::string& why)> on_repeat;
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Blocks until there is a judgement: the JSON of `allranks judge --json`. Called from many
  // threads; no more than `jobs` run at once. A failure is ours (or the wish to stop), never the
  // candidate's.
  virtual Result<std::string> Judge(const JudgeTask& task, const Stop& stop) = 0;
  virtual int jobs() const = 0;
};

// Each judgement is a process `PROGRAM judge ... --json`, so that one that crashes ends nothing
// else. It dies with this process. What is our own fault (internal_error, a crash of the judge) is
// tried kTries times in all; then the verdict internal_error stands, and a crash is a failure.
inline constexpr int kTries = 3;
// `secrets`: names of environment variables that it does not get; those that sound like keys it
// does not get anyway.
std::unique_ptr<Executor> MakeLocalExecutor(std::string program, int jobs,
                                            std::vector<std::string> secrets = {});

}  // namespace allranks::campaign
