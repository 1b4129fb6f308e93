// See run.h.
#include "common/run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/check.h"

namespace allranks::tools {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kGrace(20);  // between being asked to end and being ended

}  // namespace

std::string ReadText(const fs::path& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // ends where reading fails, as of a process that has ended
  return text.str();
}

Running Start(const std::vector<std::string>& command, const fs::path& files) {
  const std::string out = files.string() + ".out", err = files.string() + ".err";
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(open(out.c_str(), flags, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), flags, 0600), STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  return {pid, files};
}

Outcome End(const Running& running, int seconds) {
  Outcome outcome;
  int status = 0;
  rusage used = {};
  auto until = Clock::now() + std::chrono::seconds(seconds);
  while (wait4(running.pid, &status, WNOHANG, &used) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (Clock::now() < until) continue;
    // Asked first: `allranks` then ends what it has started.
    kill(running.pid, outcome.late ? SIGKILL : SIGTERM);
    outcome.late = true;
    until += kGrace;
  }
  for (const timeval& time : {used.ru_utime, used.ru_stime})
    outcome.seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = ReadText(running.files.string() + ".out");
  outcome.err = ReadText(running.files.string() + ".err");
  return outcome;
}

Outcome Run(const std::vector<std::string>& command, const fs::path& folder, int seconds) {
  return End(Start(command, folder / "run"), seconds);
}

Load::Load(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      alarm(4 * 3600);  // if we are killed
      for (volatile std::uint64_t spin = 0;;) spin = spin + 1;
    }
    pids_.push_back(pid);
  }
}

Load::~Load() {
  for (const pid_t pid : pids_) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

Scratch::Scratch(const std::string& name) {
  std::string pattern = (fs::temp_directory_path() / (name + "-XXXXXX")).string();
  CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace allranks::tools
