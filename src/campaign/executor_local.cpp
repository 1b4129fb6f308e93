// Judgements as processes of this machine.
//
// The calling thread starts the process and stays until it has ended, because the kernel's promise
// (PR_SET_PDEATHSIG) is about the thread that started it. Candidate and seed are files of a scratch
// folder: a command line can be read by everybody on the machine. The process is in a session of
// its own, so a Ctrl-C at the terminal is for this program, which then ends it.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "campaign/executor.h"
#include "judge/scratch.h"

namespace allranks::campaign {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutput = 64u
                                    << 20;  // a judgement's JSON; its log is bounded by the judge
constexpr std::size_t kMostErrors = 4096;   // the end of stderr
// Ranks and kernels have bounds of their own that end a judgement long before.
constexpr std::chrono::minutes kLongest{60};
constexpr int kLook = 20;  // milliseconds between looks at the wish to stop
// Of those that wait for their turn, who may be hundreds and are woken when it comes.
constexpr std::chrono::milliseconds kIdleLook{200};

// As `allranks judge` ends.
constexpr int kPass = 0, kNoPass = 1, kInternal = 70;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    Close(0);
    Close(1);
  }
  bool made() const { return ends_[0] >= 0; }
  int out() const { return ends_[0]; }
  int in() const { return ends_[1]; }
  void Close(int end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }

 private:
  std::array<int, 2> ends_{};
};

// Keys of providers are no business of a process that starts other people's code.
bool IsSecret(std::string_view variable, const std::vector<std::string>& secrets) {
  const std::string_view name = variable.substr(0, variable.find('='));
  if (std::find(secrets.begin(), secrets.end(), name) != secrets.end()) return true;
  for (const char* part : {"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

struct Ended {
  std::string out, errors;
  int status = 0;       // as waitpid says
  std::string because;  // not empty: we ended it
};

// Reads what there is. False: the end of the stream.
bool Drain(int fd, std::string* into) {
  char piece[1 << 16];
  for (;;) {
    const ssize_t n = read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    into->append(piece, static_cast<std::size_t>(n));
    if (into->size() > kMostOutput) return true;
  }
}

Result<pid_t> Start(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& secrets, const Pipe& out, const Pipe& errors) {
  std::vector<char*> argv, environment;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!IsSecret(*variable, secrets)) environment.push_back(*variable);
  environment.push_back(nullptr);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) return Fail("cannot open /dev/null: {}", std::strerror(errno));
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {  // other threads hold locks: only system calls from here on
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (getppid() == parent && dup2(null, 0) == 0 && dup2(out.in(), 1) == 1 &&
        dup2(errors.in(), 2) == 2) {
      execve(argv[0], argv.data(), environment.data());
    }
    _exit(127);
  }
  const int why = errno;
  close(null);
  if (pid < 0) return Fail("cannot start a process: {}", std::strerror(why));
  return pid;
}

Result<Ended> RunToEnd(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& secrets, const Stop& stop) {
  Pipe out, errors;
  if (!out.made() || !errors.made())
    return Fail("cannot create a pipe: {}; raise `ulimit -n`", std::strerror(errno));
  const Result<pid_t> pid = Start(arguments, secrets, out, errors);
  if (!pid) return Fail(pid.error());
  out.Close(1);
  errors.Close(1);
  fcntl(out.out(), F_SETFL, O_NONBLOCK);
  fcntl(errors.out(), F_SETFL, O_NONBLOCK);

  Ended ended;
  const auto deadline = Clock::now() + kLongest;
  bool reading = true;
  while (reading) {
    std::array<pollfd, 2> watched = {pollfd{out.out(), POLLIN, 0}, pollfd{errors.out(), POLLIN, 0}};
    poll(watched.data(), watched.size(), kLook);
    reading = Drain(out.out(), &ended.out);
    Drain(errors.out(), &ended.errors);
    if (ended.errors.size() > kMostErrors) ended.errors.erase(0, ended.errors.size() - kMostErrors);
    if (stop.requested()) ended.because = "stopped";
    if (Clock::now() > deadline)
      ended.because = fmt::format("it took longer than {} minutes", kLongest.count());
    if (ended.out.size() > kMostOutput)
      ended.because = fmt::format("it printed more than {} MB", kMostOutput >> 20);
    if (!ended.because.empty()) break;
  }
  if (!ended.because.empty()) kill(*pid, SIGKILL);
  // It may have closed its output and live on.
  for (;;) {
    const pid_t waited = waitpid(*pid, &ended.status, WNOHANG);
    if (waited == *pid || (waited < 0 && errno != EINTR)) break;
    if (stop.requested() || Clock::now() > deadline) {
      if (ended.because.empty()) ended.because = "stopped";
      kill(*pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Drain(errors.out(), &ended.errors);
  return ended;
}

std::string HowItEnded(const Ended& ended) {
  if (!ended.because.empty()) return ended.because;
  if (WIFSIGNALED(ended.status))
    return fmt::format("it was killed by signal {} ({})", WTERMSIG(ended.status),
                       strsignal(WTERMSIG(ended.status)));
  return fmt::format("exit code {}", WEXITSTATUS(ended.status));
}

std::string LastLines(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t at = text.size();
  for (int lines = 0; lines < 5 && at != std::string::npos && at > 0; ++lines)
    at = text.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

class LocalExecutor : public Executor {
 public:
  LocalExecutor(std::string program, int jobs, std::vector<std::string> secrets)
      : program_(std::move(program)), secrets_(std::move(secrets)), free_(jobs), jobs_(jobs) {}

  Result<std::string> Judge(const JudgeTask& task, const Stop& stop) override {
    const Slot slot(this, stop);
    if (!slot.taken()) return Fail("stopped");
    if (task.on_start) task.on_start();
    for (int tried = 1;; ++tried) {
      const Result<Ended> ended = Once(task, stop);
      if (!ended) return Fail(ended.error());
      if (stop.requested()) return Fail("stopped");
      const bool whole = ended->because.empty() && WIFEXITED(ended->status) &&
                         !ended->out.empty() && ended->out.back() == '\n';
      const int code = WIFEXITED(ended->status) ? WEXITSTATUS(ended->status) : -1;
      if (whole && (code == kPass || code == kNoPass)) return ended->out;
      const bool last = tried == kTries || !ended->because.empty() ||
                        (code != kInternal && WIFEXITED(ended->status));
      if (last && whole && code == kInternal) return ended->out;
      const std::string said = LastLines(ended->errors);
      const std::string why =
          fmt::format("the judge of {} gave no verdict: {}{}{}", task.problem.filename().string(),
                      HowItEnded(*ended), said.empty() ? "" : "; its output: ", said);
      if (last) return Fail("{}", why);
      if (task.on_repeat) task.on_repeat(why);
    }
  }

  int jobs() const override { return jobs_; }

 private:
  // One of the judgements that may run at once.
  class Slot {
   public:
    Slot(LocalExecutor* executor, const Stop& stop) : executor_(executor) {
      std::unique_lock lock(executor->mutex_);
      while (!stop.requested() && executor->free_ == 0)
        executor->changed_.wait_for(lock, kIdleLook);
      taken_ = !stop.requested();
      if (taken_) --executor->free_;
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() {
      if (!taken_) return;
      {
        const std::lock_guard lock(executor_->mutex_);
        ++executor_->free_;
      }
      executor_->changed_.notify_one();
    }
    bool taken() const { return taken_; }

   private:
    LocalExecutor* executor_;
    bool taken_ = false;
  };

  Result<Ended> Once(const JudgeTask& task, const Stop& stop) const {
    const Result<judge::Scratch> scratch = judge::Scratch::Make();
    if (!scratch) return Fail(scratch.error());
    const std::filesystem::path folder = scratch->path();
    chmod(folder.c_str(), 0700);
    // An empty file is a mistake of a command line, but of a model it is a candidate.
    const std::string source = task.source.empty() ? "\n" : task.source;
    if (const Status wrote = WriteWhole(folder / "candidate.cu", source); !wrote)
      return Fail(wrote.error());
    if (const Status wrote = WriteWhole(folder / "seed", task.seed); !wrote)
      return Fail(wrote.error());
    std::vector<std::string> arguments = {program_,
                                          "judge",
                                          task.problem.string(),
                                          "--solution",
                                          folder / "candidate.cu",
                                          "--seed-file",
                                          folder / "seed",
                                          "--profile",
                                          task.profile,
                                          "--json"};
    if (task.visible) {
      arguments.emplace_back("--visible");
    } else {
      arguments.emplace_back("--drawn-last");
      if (task.band > 0) {
        arguments.emplace_back("--band");
        arguments.push_back(std::to_string(task.band));
      }
    }
    if (!task.trace.empty()) {
      arguments.emplace_back("--trace");
      arguments.push_back(task.trace.string());
    }
    return RunToEnd(arguments, secrets_, stop);
  }

  const std::string program_;
  const std::vector<std::string> secrets_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
  const int jobs_;
};

}  // namespace

std::unique_ptr<Executor> MakeLocalExecutor(std::string program, int jobs,
                                            std::vector<std::string> secrets) {
  return std::make_unique<LocalExecutor>(std::move(program), jobs, std::move(secrets));
}

}  // namespace allranks::campaign
