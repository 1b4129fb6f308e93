// What the tools share: running commands as a user would, under a limit and with their cost, beside
// load if need be, and a folder for what they leave.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace allranks::tools {

struct Outcome {
  int code = -1;       // 128 + N: ended by signal N
  bool late = false;   // it was ended, because its time was over
  double seconds = 0;  // of CPU, with all that it started
  std::string out, err;
};

// "": there is no such file.
std::string ReadText(const std::filesystem::path& path);

// A command under way. What it prints goes to FILES.out and FILES.err.
struct Running {
  pid_t pid = -1;
  std::filesystem::path files;
};
Running Start(const std::vector<std::string>& command, const std::filesystem::path& files);
// Waits for its end. After `seconds` it is asked to end, and is ended if that does not help.
Outcome End(const Running& running, int seconds);

// Both, with files in `folder`: one at a time in each.
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

// A new folder for temporary files, which goes with this.
class Scratch {
 public:
  explicit Scratch(const std::string& name);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace allranks::tools
