// See run.h.
#include "checking/run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/check.h"

namespace allranks::checking {

namespace fs = std::filesystem;

std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Outcome Run(const std::vector<std::string>& command, const fs::path& folder, int seconds) {
  const fs::path out = folder / "out", err = folder / "err";
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    dup2(open(out.c_str(), flags, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), flags, 0600), STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  Outcome outcome;
  int status = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  rusage used = {};
  while (wait4(pid, &status, WNOHANG, &used) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (outcome.late || std::chrono::steady_clock::now() < until) continue;
    outcome.late = true;
    kill(pid, SIGTERM);  // `allranks` ends what it has started
  }
  for (const timeval& time : {used.ru_utime, used.ru_stime})
    outcome.seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = ReadText(out);
  outcome.err = ReadText(err);
  return outcome;
}

Load::Load(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      alarm(1800);
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

}  // namespace allranks::checking
