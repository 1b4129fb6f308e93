// Theory of operation
//
//   judge ── bubblewrap (outside) ── launcher (process 1 inside) ── the command, and what it starts
//
// Start() makes a control group with the bounds, writes the filters and the launcher's orders to
// files in memory, and starts bubblewrap in the group, as nobody if this process is root.
// bubblewrap makes the namespaces, mounts what the spec lists, installs the common filter and
// becomes two processes: one outside that waits, one inside that runs the launcher. The launcher
// puts the last bounds and the locked filter on the command and reports how it ended.
//
// Nothing outlives the end. Process 1 ends only when every process of its namespace is gone, and
// bubblewrap only after process 1; so "bubblewrap has ended" means that nothing is left but the
// group's folder, which is removed here. An end is brought about by killing process 1. If this
// process dies, bubblewrap dies with it and process 1 with bubblewrap (parent-death signals); only
// empty folders of control groups are left, which SweepLeftovers() of a later process removes.
// There are no other files: /tmp inside is a tmpfs, sources go in and results come out through
// memory.
//
// Bounds that the kernel counts but does not end by itself (CPU of all processes, wall clock,
// output) are enforced in Poll(). Where no control group can be had, the processes are looked up in
// /proc instead, and rlimits bound what happens between two looks.
#include "judge/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "judge/bubblewrap.h"
#include "judge/cgroup.h"
#include "judge/filter.h"
#include "judge/idleness.h"
#include "judge/launch_config.h"
#include "judge/means.h"
#include "judge/orders.h"
#include "judge/process_tree.h"
#include "judge/spawn.h"
#include "judge/trusted.h"
#include "wire/frame.h"

extern "C" const char allranks_launcher_begin[], allranks_launcher_end[];

namespace allranks::judge {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using wire::Fd;
using Why = SandboxEnd::Why;

constexpr std::uint64_t kOverhead = 16ull << 20;  // memory of bubblewrap and the launcher
constexpr milliseconds kGrace{2000};              // for bubblewrap, to say which process is 1
constexpr std::uint32_t kOwnProcesses = 2;        // those two

// A file in memory with these bytes, at its beginning.
Result<Fd> MemoryFile(const char* name, std::string_view bytes) {
  Fd fd(memfd_create(name, MFD_CLOEXEC));
  if (fd.get() < 0) return Fail("cannot create a memory file: {}", strerror(errno));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t more =
        pwrite(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (more <= 0) return Fail("cannot write a memory file: {}", strerror(errno));
    done += static_cast<std::size_t>(more);
  }
  return fd;
}

std::string_view BytesOf(const Filter& filter) {
  return {reinterpret_cast<const char*>(filter.data()), filter.size() * 8};
}

class Running final : public Sandbox {
 public:
  explicit Running(const SandboxSpec& spec) : limits_(spec.limits), name_(spec.name) {}
  ~Running() override {
    // It may not have begun: there is nobody to end, and -1 would be everybody.
    if (!ended_ && pid_ > 0) {
      Kill();
      Wait();
    }
  }

  Status Begin(const SandboxSpec& spec);

  std::vector<int> descriptors() const override;
  bool AwaitStart() override;
  int pidfd() const override { return inside_.get(); }
  bool Poll() override;
  milliseconds Patience() const override;
  void Kill() override { End(Why::kKilled); }
  const SandboxEnd& Wait() override;
  const SandboxEnd& end() const override { return result_; }

 private:
  // A stream that the program writes to. What comes after the limit is not kept.
  struct Stream {
    Fd fd;
    std::string* kept = nullptr;
  };

  void AwaitNews();
  void Drain(Stream* stream);
  void TakeReports();
  void TakeInfo();
  void CheckBounds();
  void End(Why why);
  void Finish(int status);
  double CpuSeconds() const override;
  void SetCpu(milliseconds cpu) override { limits_.cpu = cpu; }

  SandboxLimits limits_;
  std::string name_;
  std::unique_ptr<Cgroup> group_;
  Fd outside_;  // pidfd of bubblewrap
  Fd inside_;   // pidfd of process 1, when it is known
  pid_t pid_ = -1;
  Fd info_, reports_;
  std::string info_text_;
  Stream out_, err_;
  std::vector<Fd> collected_;
  Idleness idle_;
  Clock::time_point ending_since_;
  bool started_ = false, ended_ = false, ending_ = false;
  int not_started_ = 0;
  std::optional<LaunchReport> report_;
  TreeUse use_;  // without a control group
  SandboxEnd result_;
};

Status Running::Begin(const SandboxSpec& spec) {
  idle_ = Idleness(Clock::now());
  result_.collected.resize(spec.collect.size());
  const SandboxMeans& means = Means();
  if (!means.missing.empty()) return Fail("no sandbox: {}", means.missing);
  if (OurCgroupPlaces().version != 0) {
    auto group = Cgroup::Make(
        OurCgroupPlaces(), {limits_.memory_bytes + kOverhead, limits_.processes + kOwnProcesses});
    if (!group) return Fail(group.error());
    group_ = std::move(*group);
  }

  // Pipes: output (2), the launcher's reports, bubblewrap's word about process 1.
  Fd ends[4];
  Fd* const begins[4] = {&out_.fd, &err_.fd, &reports_, &info_};
  for (int i = 0; i < 4; ++i) {
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) != 0) return Fail("cannot create a pipe: {}", strerror(errno));
    *begins[i] = Fd(pair[0]);
    ends[i] = Fd(pair[1]);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
  }
  out_.kept = &result_.out;
  err_.kept = &result_.err;
  for (std::size_t i = 0; i < spec.collect.size(); ++i) {
    auto file = MemoryFile("collected", "");
    if (!file) return Fail(file.error());
    collected_.push_back(std::move(*file));
  }

  auto text = RenderOrders(spec, group_ != nullptr, ends[2].get(), collected_);
  if (!text) return Fail(text.error());
  auto orders = MemoryFile("orders", *text);
  auto launcher = MemoryFile(
      "launcher", {allranks_launcher_begin,
                   static_cast<std::size_t>(allranks_launcher_end - allranks_launcher_begin)});
  static const Result<Filter> kAlone = CommonFilter(false), kTeam = CommonFilter(true);
  const Result<Filter>& common = spec.filter == SandboxSpec::Filter::kTeam ? kTeam : kAlone;
  if (!common) return Fail(common.error());
  auto filter = MemoryFile("filter", BytesOf(*common));
  for (const auto* file : {&orders, &launcher, &filter}) {
    if (!*file) return Fail(file->error());
  }
  std::vector<Fd> files;
  std::vector<int> inherited = {orders->get(), launcher->get(), filter->get(), ends[2].get(),
                                ends[3].get()};
  std::vector<int> file_numbers;
  for (const SandboxFile& file : spec.files) {
    auto made = MemoryFile("file", file.bytes);
    if (!made) return Fail(made.error());
    file_numbers.push_back(made->get());
    inherited.push_back(made->get());
    files.push_back(std::move(*made));
  }
  auto plan = PlanBubblewrap(spec, means.drops_user, launcher->get(), filter->get(), ends[3].get(),
                             file_numbers);
  if (!plan) return Fail(plan.error());
  auto arguments = MemoryFile("arguments", plan->arguments);
  if (!arguments) return Fail(arguments.error());
  inherited.push_back(arguments->get());
  for (const Fd& fd : collected_) inherited.push_back(fd.get());
  inherited.insert(inherited.end(), spec.descriptors.begin(), spec.descriptors.end());

  SpawnOrder order;
  order.arguments = {"bwrap", "--args", std::to_string(arguments->get()), kLauncherPath,
                     std::to_string(orders->get())};
  order.out = ends[0].get();
  order.err = ends[1].get();
  order.inherited = inherited;
  order.drop_user = means.drops_user;
  if (spec.network_of != nullptr) {
    order.network = spec.network_of->pidfd();
    // Without it this process's own network would be shared.
    if (order.network < 0) return Fail("the sandbox whose network {} shares has ended", name_);
  }
  order.stage = plan->stage;
  order.staged = plan->staged;
  if (group_ != nullptr) {
    for (const Fd& door : group_->doors()) order.doors.push_back(door.get());
  }
  auto pid = Spawn(order);
  if (!pid) return Fail(pid.error());
  pid_ = *pid;
  outside_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (outside_.get() < 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    return Fail("cannot watch a process: {}", strerror(errno));
  }
  return Ok();
}

std::vector<int> Running::descriptors() const {
  std::vector<int> all;
  if (ended_) return all;
  for (const Fd* fd : {&outside_, &info_, &reports_, &out_.fd, &err_.fd}) {
    if (fd->get() >= 0) all.push_back(fd->get());
  }
  return all;
}

// Takes what is there. A stream at its end, or past its limit, is closed.
void Running::Drain(Stream* stream) {
  char buffer[16 << 10];
  // Bounded, so that a program that writes without end cannot keep the judge here.
  for (int i = 0; i < 64 && stream->fd.get() >= 0; ++i) {
    const ssize_t got = read(stream->fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      stream->fd = Fd();
      return;
    }
    const std::size_t room = limits_.output_bytes - stream->kept->size();
    stream->kept->append(buffer, std::min(room, static_cast<std::size_t>(got)));
    if (static_cast<std::size_t>(got) > room) {
      stream->fd = Fd();
      End(Why::kOutput);
      return;
    }
  }
}

void Running::TakeInfo() {
  char buffer[512];
  while (info_.get() >= 0) {
    const ssize_t got = read(info_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0 && info_text_.size() < 4096) {
      info_text_.append(buffer, static_cast<std::size_t>(got));
      continue;
    }
    info_ = Fd();
    const std::size_t at = info_text_.find("\"child-pid\":");
    if (at == std::string::npos) return;
    const pid_t pid = std::atoi(info_text_.c_str() + at + 12);
    // bubblewrap has not waited for its child yet, or it would have ended: the number is the
    // child's.
    if (pid > 1) inside_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  }
}

void Running::TakeReports() {
  LaunchReport report;
  while (reports_.get() >= 0) {
    const ssize_t got = read(reports_.get(), &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got != sizeof report) {  // the launcher is gone; it writes each report at once
      reports_ = Fd();
      return;
    }
    switch (report.event) {
      case LaunchReport::Event::kStarted:
        started_ = true;
        break;
      case LaunchReport::Event::kNotStarted:
        not_started_ = report.value;
        break;
      case LaunchReport::Event::kFiles:
        End(Why::kFiles);
        break;
      case LaunchReport::Event::kEnded:
        report_ = report;
        break;
    }
  }
}

double Running::CpuSeconds() const {
  if (group_ != nullptr) return static_cast<double>(group_->CpuMicroseconds()) * 1e-6;
  return std::max(use_.cpu_seconds, report_ ? static_cast<double>(report_->cpu_us) * 1e-6 : 0.0);
}

void Running::CheckBounds() {
  if (ending_) {
    End(result_.why);
    if (Clock::now() - ending_since_ > kGrace) kill(pid_, SIGKILL);
    return;
  }
  if (report_) return;
  if (idle_.For(Clock::now(), CpuSeconds()) > limits_.idle) return End(Why::kIdle);
  if (group_ != nullptr) {
    if (group_->OutOfMemory()) return End(Why::kMemory);
    if (group_->OutOfProcesses()) return End(Why::kProcesses);
  } else {
    use_.Add(LookAtTree(pid_));
    if (use_.memory > limits_.memory_bytes) return End(Why::kMemory);
    if (use_.processes > limits_.processes + kOwnProcesses) return End(Why::kProcesses);
  }
  if (CpuSeconds() * 1000 > static_cast<double>(limits_.cpu.count())) End(Why::kCpu);
}

void Running::End(Why why) {
  if (ended_) return;
  if (!ending_) {
    result_.why = why;
    ending_since_ = Clock::now();
  }
  ending_ = true;
  TakeInfo();
  // Without bubblewrap, process 1 could live on if its death signal is not set yet: it is killed as
  // soon as it is known, which is at once if bubblewrap works at all.
  if (inside_.get() >= 0) syscall(SYS_pidfd_send_signal, inside_.get(), SIGKILL, nullptr, 0);
}

bool Running::Poll() {
  if (ended_) return true;
  TakeInfo();
  TakeReports();
  Drain(&out_);
  Drain(&err_);
  CheckBounds();
  int status = 0;
  const pid_t reaped = waitpid(pid_, &status, WNOHANG);
  if (reaped == pid_) Finish(status);
  return ended_;
}

void Running::Finish(int status) {
  TakeReports();
  Drain(&out_);
  Drain(&err_);
  ended_ = true;
  result_.cpu_seconds = CpuSeconds();
  result_.peak_memory = group_ != nullptr ? group_->PeakMemory() : use_.peak;
  const bool out_of_memory = group_ != nullptr && group_->OutOfMemory();
  const bool out_of_processes = group_ != nullptr && group_->OutOfProcesses();
  group_.reset();  // kills what might be left, if bubblewrap had to be killed
  if (report_) result_.peak_memory = std::max(result_.peak_memory, report_->peak_bytes);
  if (ending_) {
    // As it is: the reason is known.
  } else if (out_of_memory) {
    result_.why = Why::kMemory;
  } else if (out_of_processes) {
    result_.why = Why::kProcesses;
  } else if (!started_ || not_started_ != 0 || !report_) {
    result_.why = Why::kSandbox;
    if (not_started_ != 0) {
      result_.text = fmt::format("cannot start {}: {}", name_, strerror(not_started_));
    } else if (!started_) {
      result_.text = fmt::format("bubblewrap ended with status {}: {}{}", status, result_.err,
                                 Remedy(result_.err));
    } else {
      result_.text = fmt::format("the launcher of {} ended without a report", name_);
    }
  } else if (WIFSIGNALED(report_->value)) {
    result_.why = WTERMSIG(report_->value) == SIGXCPU ? Why::kCpu : Why::kSignal;
    result_.code = WTERMSIG(report_->value);
  } else {
    result_.why = Why::kExit;
    result_.code = WEXITSTATUS(report_->value);
  }
  for (std::size_t i = 0; report_ && !ending_ && i < collected_.size(); ++i) {
    if ((report_->collected >> i & 1) == 0) continue;
    struct stat about;
    if (fstat(collected_[i].get(), &about) != 0) continue;
    std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
    if (pread(collected_[i].get(), bytes.data(), bytes.size(), 0) == about.st_size) {
      result_.collected[i] = std::move(bytes);
    }
  }
  for (Fd* fd : {&out_.fd, &err_.fd, &info_, &reports_, &outside_, &inside_}) *fd = Fd();
  collected_.clear();
}

milliseconds Running::Patience() const {
  if (ended_) return std::chrono::minutes(1);  // nothing will come
  if (ending_) return milliseconds(inside_.get() >= 0 ? 50 : 2);
  const auto idle = std::chrono::ceil<milliseconds>(idle_.since() + limits_.idle - Clock::now());
  // The earliest moment at which all cores together can have used up what is left.
  static const long kCores = std::max(1l, sysconf(_SC_NPROCESSORS_ONLN));
  const auto cpu = milliseconds(
      static_cast<long>((static_cast<double>(limits_.cpu.count()) - CpuSeconds() * 1000) /
                        static_cast<double>(kCores)));
  const milliseconds look = group_ != nullptr ? milliseconds(100) : milliseconds(10);
  return std::max(milliseconds(1), std::min({idle, cpu + milliseconds(1), look}));
}

void Running::AwaitNews() {
  std::vector<pollfd> fds;
  for (const int fd : descriptors()) fds.push_back({fd, POLLIN, 0});
  poll(fds.data(), fds.size(), static_cast<int>(Patience().count()));
}

bool Running::AwaitStart() {
  while (!Poll() && (!started_ || inside_.get() < 0)) AwaitNews();
  return !ended_;
}

const SandboxEnd& Running::Wait() {
  while (!Poll()) AwaitNews();
  return result_;
}

}  // namespace

Result<std::unique_ptr<Sandbox>> Sandbox::Start(const SandboxSpec& spec) {
  if (spec.trusted) return StartTrusted(spec);
  auto running = std::make_unique<Running>(spec);
  if (auto begun = running->Begin(spec); !begun) return Fail(begun.error());
  return running;
}

void SweepLeftovers() { SweepCgroups(OurCgroupPlaces()); }

}  // namespace allranks::judge
