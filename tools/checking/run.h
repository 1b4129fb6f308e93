// Runs commands for `checking`: what they print goes to files of a scratch folder.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace allranks::checking {

struct Outcome {
  int code = -1;  // 128 + N: ended by signal N
  bool late = false;
  double seconds = 0;  // of CPU, with all that it started
  std::string out, err;
};

std::string ReadText(const std::filesystem::path& path);

// Runs a command to its end, or ends it after `seconds`.
Outcome Run(const std::vector<std::string>& command, const std::filesystem::path& folder,
            int seconds);

// Processes that keep the cores busy while this lives.
class Load {
 public:
  explicit Load(int count);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  std::vector<pid_t> pids_;
};

}  // namespace allranks::checking
