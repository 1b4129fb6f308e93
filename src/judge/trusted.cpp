// What a sandbox mounts at a path inside is here a link at the same path below a scratch folder,
// and paths in the command and its variables are changed accordingly. There are no namespaces, no
// filters and no control group: the program can do whatever its user can. Bounds catch mistakes
// only: CPU time and idleness of the process and its descendants, output, and per process the size
// of data and the number of descriptors.
//
// The end: the program leads a session of its own, and its process group is killed before it is
// waited for, while the kernel cannot give its number to somebody else. A descendant that leaves
// the group survives; so may one of the compiler's if this process is killed.
#include "judge/trusted.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "judge/cgroup.h"
#include "judge/idleness.h"
#include "judge/process_tree.h"
#include "judge/scratch.h"
#include "judge/spawn.h"
#include "wire/frame.h"

namespace allranks::judge {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using wire::Fd;
using Why = SandboxEnd::Why;

constexpr std::string_view kTemporary = "/tmp/";
constexpr milliseconds kLook{20};             // between two looks at what is used
constexpr char kSharedMemory[] = "/dev/shm";  // the machine's own, where a sandbox has another

class TrustedRun final : public Sandbox {
 public:
  explicit TrustedRun(const SandboxSpec& spec)
      : limits_(spec.limits), collect_(spec.collect), idle_(Clock::now()) {}
  ~TrustedRun() override {
    if (ended_ || pid_ <= 1) return;
    Kill();
    Wait();
  }

  Status Begin(const SandboxSpec& spec);

  bool AwaitStart() override { return !Poll(); }
  int pidfd() const override { return process_.get(); }
  std::vector<int> descriptors() const override;
  bool Poll() override;
  milliseconds Patience() const override;
  double CpuSeconds() const override { return use_.cpu_seconds; }
  void SetCpu(milliseconds cpu) override { limits_.cpu = cpu; }
  void Kill() override { End(Why::kKilled); }
  const SandboxEnd& Wait() override;
  const SandboxEnd& end() const override { return result_; }

 private:
  Status LayOut(const SandboxSpec& spec);
  std::string Outside(const std::string& path) const { return PathsBelow(root_, tops_, path); }
  void Drain(Fd* stream, std::string* kept);
  void CheckBounds();
  void End(Why why);
  void Finish();

  SandboxLimits limits_;
  std::vector<std::string> collect_;
  std::optional<Scratch> scratch_;
  std::string root_;
  std::vector<std::string> tops_;  // what is below root_
  pid_t pid_ = -1;
  Fd process_, out_, err_;
  Idleness idle_;
  Clock::time_point looked_;
  TreeUse use_;
  bool ending_ = false, ended_ = false;
  SandboxEnd result_;
};

// Files and links below the scratch folder.
Status TrustedRun::LayOut(const SandboxSpec& spec) {
  Result<Scratch> scratch = Scratch::Make();
  if (!scratch) return Fail(scratch.error());
  scratch_ = std::move(*scratch);
  root_ = scratch_->path();
  const auto add_top = [&](const std::string& path) {
    const std::string top = path.substr(0, path.find('/', 1));
    if (std::find(tops_.begin(), tops_.end(), top) == tops_.end()) tops_.push_back(top);
  };
  std::error_code error;
  add_top("/tmp");
  fs::create_directories(root_ + "/tmp", error);
  for (const Bind& bind : spec.binds) {
    if (bind.from == bind.to || bind.to == kSharedMemory) continue;
    add_top(bind.to);
    const fs::path link = root_ + bind.to;
    if (!error) fs::create_directories(link.parent_path(), error);
    if (!error) fs::create_symlink(fs::absolute(bind.from), link, error);
  }
  if (error) return Fail("cannot write to {}: {}", root_, error.message());
  for (const SandboxFile& file : spec.files) {
    add_top(file.path);
    const fs::path path = root_ + file.path;
    fs::create_directories(path.parent_path(), error);
    if (const Status wrote = WriteWhole(path, file.bytes); !wrote) return wrote;
  }
  return Ok();
}

Status TrustedRun::Begin(const SandboxSpec& spec) {
  result_.collected.resize(collect_.size());
  if (const Status there = LayOut(spec); !there) return there;
  Fd ends[2];
  Fd* const begins[2] = {&out_, &err_};
  for (int i = 0; i < 2; ++i) {
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) != 0) return Fail("cannot create a pipe: {}", strerror(errno));
    *begins[i] = Fd(pair[0]);
    ends[i] = Fd(pair[1]);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
  }
  SpawnOrder order;
  for (const std::string& word : spec.command) order.arguments.push_back(Outside(word));
  for (const std::string& word : spec.environment) order.environment.push_back(Outside(word));
  order.program = order.arguments.at(0);
  order.folder = Outside(spec.folder);
  order.fixed_addresses = spec.no_address_randomization;
  order.bounds = {
      {RLIMIT_CORE, 0}, {RLIMIT_DATA, limits_.memory_bytes}, {RLIMIT_NOFILE, limits_.descriptors}};
  order.out = ends[0].get();
  order.err = ends[1].get();
  order.inherited = spec.descriptors;
  const Result<pid_t> pid = Spawn(order);
  if (!pid) return Fail("{}: {}", spec.name, pid.error().message);
  pid_ = *pid;
  process_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (process_.get() >= 0) return Ok();
  const int reason = errno;
  Kill();
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  return Fail("cannot watch a process: {}", strerror(reason));
}

std::vector<int> TrustedRun::descriptors() const {
  std::vector<int> all;
  if (ended_) return all;
  for (const Fd* fd : {&process_, &out_, &err_})
    if (fd->get() >= 0) all.push_back(fd->get());
  return all;
}

// Takes what is there. A stream at its end, or past its limit, is closed.
void TrustedRun::Drain(Fd* stream, std::string* kept) {
  char buffer[16 << 10];
  // Bounded, so that a program that writes without end cannot keep the judge here.
  for (int i = 0; i < 64 && stream->get() >= 0; ++i) {
    const ssize_t got = read(stream->get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    const std::size_t room = limits_.output_bytes - kept->size();
    const auto size = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    kept->append(buffer, std::min(room, size));
    if (got <= 0 || size > room) *stream = Fd();
    if (size > room) End(Why::kOutput);
  }
}

void TrustedRun::CheckBounds() {
  // Each look reads some files of /proc, and there may be many events between two of use.
  if (ending_ || Clock::now() - looked_ < kLook) return;
  looked_ = Clock::now();
  use_.Add(LookAtTree(pid_));
  if (idle_.For(Clock::now(), CpuSeconds()) > limits_.idle) return End(Why::kIdle);
  if (CpuSeconds() * 1000 > static_cast<double>(limits_.cpu.count())) End(Why::kCpu);
}

void TrustedRun::End(Why why) {
  if (ended_ || pid_ <= 1) return;
  if (!ending_) result_.why = why;
  ending_ = true;
  kill(-pid_, SIGKILL);
}

bool TrustedRun::Poll() {
  if (ended_) return true;
  Drain(&out_, &result_.out);
  Drain(&err_, &result_.err);
  CheckBounds();
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_)
    Finish();
  return ended_;
}

// It has ended and has not been waited for.
void TrustedRun::Finish() {
  kill(-pid_, SIGKILL);  // what it has left running
  int status = 0;
  rusage used{};
  while (wait4(pid_, &status, 0, &used) < 0 && errno == EINTR) {
  }
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  use_.cpu_seconds = std::max(use_.cpu_seconds, seconds(used.ru_utime) + seconds(used.ru_stime));
  Drain(&out_, &result_.out);
  Drain(&err_, &result_.err);
  ended_ = true;
  result_.cpu_seconds = use_.cpu_seconds;
  result_.peak_memory =
      std::max(use_.peak, static_cast<std::uint64_t>(std::max(0l, used.ru_maxrss)) << 10);
  if (!ending_) {
    result_.why = WIFSIGNALED(status) ? Why::kSignal : Why::kExit;
    result_.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  }
  for (std::size_t i = 0; !ending_ && status == 0 && i < collect_.size(); ++i) {
    const std::string path = Outside(collect_[i]);
    struct stat about{};
    if (lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    if (Result<std::string> bytes = ReadWhole(path, limits_.file_bytes))
      result_.collected[i] = std::move(*bytes);
  }
  for (Fd* fd : {&process_, &out_, &err_}) *fd = Fd();
  scratch_.reset();
}

milliseconds TrustedRun::Patience() const {
  if (ended_) return std::chrono::minutes(1);  // nothing will come
  const auto idle = std::chrono::ceil<milliseconds>(idle_.since() + limits_.idle - Clock::now());
  return std::clamp(idle, milliseconds(1), kLook);
}

const SandboxEnd& TrustedRun::Wait() {
  while (!Poll()) {
    std::vector<pollfd> fds;
    for (const int fd : descriptors()) fds.push_back({fd, POLLIN, 0});
    poll(fds.data(), fds.size(), static_cast<int>(Patience().count()));
  }
  return result_;
}

}  // namespace

std::string PathsBelow(const std::string& root, const std::vector<std::string>& tops,
                       std::string_view word) {
  // Where a path begins: at the word's begin, behind a separator, or behind -I and -L.
  const auto begins = [&](std::size_t at) {
    if (at == 0 || std::string_view(" =:,'\"").find(word[at - 1]) != std::string_view::npos)
      return true;
    return at >= 2 && word[at - 2] == '-' && (word[at - 1] == 'I' || word[at - 1] == 'L');
  };
  std::string out;
  for (std::size_t at = 0; at < word.size();) {
    const auto below = [&](const std::string& top) {
      const std::string_view rest = word.substr(at);
      return rest.starts_with(top) &&
             (rest.size() == top.size() ||
              std::string_view("/ :,'\"").find(rest[top.size()]) != std::string_view::npos);
    };
    if (word[at] == '/' && begins(at) && std::any_of(tops.begin(), tops.end(), below)) out += root;
    out += word[at++];
  }
  return out;
}

std::string BuildFolderIn(std::string_view text) {
  const std::string scratch = "/" + std::string(kMakerPrefix);
  for (std::size_t at = text.find(scratch); at != std::string_view::npos;
       at = text.find(scratch, at + 1)) {
    const std::size_t end = std::min(text.find('/', at + 1), text.size());
    if (!text.substr(end).starts_with(kTemporary)) continue;
    const std::size_t before = text.find_last_of(" \t\n,;:'\"(<", at);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    return std::string(text.substr(begin, end + kTemporary.size() - begin));
  }
  return "";
}

std::string AsInSandbox(std::string text) {
  for (std::string folder = BuildFolderIn(text); !folder.empty(); folder = BuildFolderIn(text))
    text.replace(text.find(folder), folder.size(), kTemporary);
  return text;
}

Result<std::unique_ptr<Sandbox>> StartTrusted(const SandboxSpec& spec) {
  auto running = std::make_unique<TrustedRun>(spec);
  if (const Status begun = running->Begin(spec); !begun) return Fail(begun.error());
  return running;
}

}  // namespace allranks::judge
