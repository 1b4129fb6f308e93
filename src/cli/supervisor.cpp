// The supervisor: starts the node and the program, passes signals and the terminal on, and ends
// both.
//
//   allranks exec ──control (socketpair)──▶ allranks node ◀──socket in a private folder── the ranks
//
// The program gets a process group of its own (and the terminal, if this process had it), so that a
// deadlock or a signal can end all of it and nothing else. This process is the reaper of whatever
// the program leaves behind. If it is killed itself, the node ends because the control connection
// does, and the program by PR_SET_PDEATHSIG.
#include "cli/exec.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli/fault_check.h"
#include "cli/judge_tools.h"
#include "cli/places.h"
#include "cli/private_folder.h"
#include "cli/ranks.h"
#include "cli/say.h"
#include "cli/stats.h"
#include "node/faults.h"
#include "node/hardware/pcie.h"
#include "node/hardware/profile.h"
#include "wire/frame.h"
#include "wire/listen.h"

namespace allranks::cli {

namespace {

constexpr char kTopologyFile[] = "topology.xml";  // in its folder
// Limit on a program's allocations. Untouched pages use no memory.
constexpr std::uint64_t kMemoryLimit = std::uint64_t{128} << 30;

using Clock = std::chrono::steady_clock;
using wire::Fd;

constexpr auto kGrace = std::chrono::seconds(2);            // between a request to end and SIGKILL
constexpr auto kPatience = std::chrono::seconds(10);        // for the node's report ...
constexpr auto kSignalPatience = std::chrono::seconds(1);   // for where it stands, then it is ended
constexpr auto kTracePatience = std::chrono::seconds(120);  // ... and a trace that it writes first

// "SIGINT".
std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : std::string("SIG") + name;
}

class Supervisor {
 public:
  Supervisor(const ExecOptions& options, bool quiet) : options_(options), quiet_(quiet) {}
  RunOutcome Run();

 private:
  bool PlaceRanks(const node::Profile& profile);
  Result<void> StartNode(const std::string& profile, const std::string& folder, const Fd& listen);
  Result<void> StartProgram(const std::string& shim, const std::string& socket);
  void Loop();
  void OnSignals();
  void OnControl(std::string* where = nullptr);
  void Reap();
  void NodeLost();
  void GiveTerminal(pid_t group);
  // Prints where everything stands, if the node says so in time.
  void TellWhere(const std::string& why, std::chrono::seconds patience);
  void TimeOut();
  // Asks the node for its report; empty if it has none to give.
  wire::FinishReply Finish();
  void EndEverything();
  // An exit code: it could not be run.
  std::optional<int> Start();
  RunOutcome Conclude();

  const ExecOptions& options_;
  bool quiet_ = false;
  std::unique_ptr<PrivateFolder> folder_;
  std::string deadlock_text_;
  bool several_hosts_ = false;
  std::vector<std::string> launcher_;  // stands before the program's own command
  sigset_t old_mask_{};
  Fd signals_, control_, trace_;
  pid_t node_ = -1, program_ = -1;
  bool terminal_ = false;  // the program has it
  std::optional<int> program_status_, node_status_;
  bool deadlock_ = false, node_lost_ = false;
  bool asked_to_end_ = false, timed_out_ = false;
  std::optional<Clock::time_point> timeout_at_;
  std::optional<Clock::time_point> kill_at_;
};

RunOutcome Supervisor::Run() {
  RunOutcome outcome;
  outcome.refused = Start();
  if (outcome.refused) return outcome;
  Loop();
  outcome = Conclude();
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  return outcome;
}

std::optional<int> Supervisor::Start() {
  const Result<std::string> profile = FindProfile(options_.profile);
  if (!profile) {
    Say("{}", profile.error().message);
    return kExitUsage;
  }
  const Result<node::Profile> parsed = node::LoadProfile(*profile);
  if (!parsed) {
    Say("{}", parsed.error().message);
    return kExitUsage;
  }
  for (const std::string& text : options_.faults) {
    const Status fits = CheckFault(text, *parsed, options_.ranks);
    if (fits) continue;
    Say("{}", fits.error().message);
    return kExitUsage;
  }
  if (options_.devices > parsed->machine.devices_per_host) {
    Say("--devices {}: a host of {} has {} devices", options_.devices, parsed->name,
        parsed->machine.devices_per_host);
    return kExitUsage;
  }
  if (!PlaceRanks(*parsed)) return kExitUsage;
  if (!options_.trace.empty()) {
    // Opened here, so that a mistake shows before the program runs; written by the node.
    trace_ = Fd(open(options_.trace.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (trace_.get() < 0) {
      Say("cannot write {}: {}", options_.trace, std::strerror(errno));
      return kExitUsage;
    }
  }
  const Result<std::string> shim = FindShim();
  if (!shim) {
    Say("{}", shim.error().message);
    return kExitInternal;
  }
  folder_ = std::make_unique<PrivateFolder>();
  if (folder_->path().empty()) {
    Say("cannot create a temporary folder: {}", std::strerror(errno));
    return kExitInternal;
  }
  const std::string socket = folder_->path() + "/node";
  std::ofstream(folder_->path() + "/" + kTopologyFile) << node::NcclTopology(*parsed);
  Result<Fd> listening = wire::Listen(socket, 1024);
  if (!listening) {
    Say("{}", listening.error().message);
    return kExitInternal;
  }
  sigset_t mask;
  sigemptyset(&mask);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCONT}) sigaddset(&mask, signal);
  sigprocmask(SIG_BLOCK, &mask, &old_mask_);
  signals_ = Fd(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  signal(SIGTTOU, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);

  if (const Result<void> started = StartNode(*profile, folder_->path(), *listening); !started) {
    Say("{}", started.error().message);
    return kExitInternal;
  }
  *listening = Fd();  // from here on only the node has it
  if (const Result<void> started = StartProgram(*shim, socket); !started) {
    Say("{}", started.error().message);
    EndEverything();
    return kExitInternal;
  }
  return std::nullopt;
}

// Several ranks are started by a launcher that is a process of the run itself, so that the node
// knows of each before it starts and their order is the same in every run.
bool Supervisor::PlaceRanks(const node::Profile& profile) {
  const auto hosts = static_cast<int>(profile.machine.hosts);
  several_hosts_ = hosts > 1;
  if (options_.ranks == 0) return true;
  const auto devices =
      static_cast<int>(options_.devices > 0 ? options_.devices : profile.machine.devices_per_host);
  int per_host = options_.ranks_per_host;
  if (per_host == 0) per_host = hosts == 1 ? options_.ranks : devices;
  if ((options_.ranks + per_host - 1) / per_host > hosts) {
    Say("--ranks {}: {} has {} host{} for {} rank{} each (--ranks-per-host changes that)",
        options_.ranks, profile.name, hosts, hosts == 1 ? "" : "s", per_host,
        per_host == 1 ? "" : "s");
    return false;
  }
  launcher_ = {OwnPath(), "ranks", std::to_string(options_.ranks), std::to_string(per_host), "--"};
  return true;
}

Result<void> Supervisor::StartNode(const std::string& profile, const std::string& folder,
                                   const Fd& listen) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Fail("socketpair: {}", std::strerror(errno));
  control_ = Fd(ends[0]);
  const Fd theirs(ends[1]);
  const std::string own = OwnPath();
  std::vector<std::string> arguments = {
      "allranks-node",    "node",
      "--listen",         std::to_string(listen.get()),
      "--control",        std::to_string(theirs.get()),
      "--folder",         folder,
      "--profile",        profile,
      "--devices",        std::to_string(options_.devices),
      "--seed",           std::to_string(options_.schedule),
      "--patience-ms",    std::to_string(static_cast<std::int64_t>(options_.patience_s * 1e3)),
      "--ranks-per-host", std::to_string(options_.ranks_per_host),
      "--trace-fd",       std::to_string(trace_.get()),
      "--memory-limit",   std::to_string(kMemoryLimit)};
  if (options_.check) arguments.push_back("--check");
  if (const std::string cache = CacheFolder(); !cache.empty()) {
    arguments.push_back("--index-folder");
    arguments.push_back(cache + "/indices");  // not "modules": the judge keeps its own there
  }
  for (const std::string& fault : options_.faults) {
    arguments.push_back("--fault");
    arguments.push_back(fault);
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  node_ = fork();
  if (node_ < 0) return Fail("fork: {}", std::strerror(errno));
  if (node_ == 0) {
    // Out of reach of the terminal's Ctrl-C: it ends when there is nothing left to serve.
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    signal(SIGTTOU, SIG_DFL);
    fcntl(listen.get(), F_SETFD, 0);
    fcntl(theirs.get(), F_SETFD, 0);
    if (trace_.get() >= 0) fcntl(trace_.get(), F_SETFD, 0);
    // Addresses that reports and hash tables could depend on are the same in every run.
    personality(ADDR_NO_RANDOMIZE);
    execv(own.c_str(), argv.data());
    _exit(kExitInternal);
  }
  return {};
}

Result<void> Supervisor::StartProgram(const std::string& shim, const std::string& socket) {
  const auto prefixed = [](const std::string& value, const char* name) {
    const char* old = std::getenv(name);
    return old == nullptr || *old == '\0' ? value : value + ":" + old;
  };
  const std::string library_path = prefixed(shim, "LD_LIBRARY_PATH");
  std::string preload = prefixed(shim + "/liballranks_host.so", "LD_PRELOAD");
  // What the audit library redirects to, behind libraries that the user has put in front of it. A
  // build without CUDA's headers has none.
  const std::string runtime = shim + "/libcudart.so.13";
  const bool redirect = !options_.no_redirect && access(runtime.c_str(), R_OK) == 0;
  if (redirect) preload += ":" + runtime;
  const std::string audit = prefixed(shim + "/liballranks_audit.so", "LD_AUDIT");
  // A build without NVTX's headers has none.
  const std::string nvtx = shim + "/liballranks_nvtx.so";
  std::vector<std::string> arguments = launcher_;
  arguments.insert(arguments.end(), options_.command.begin(), options_.command.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  terminal_ = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
  const pid_t parent = getpid();
  program_ = fork();
  if (program_ < 0) return Fail("fork: {}", std::strerror(errno));
  if (program_ == 0) {
    setpgid(0, 0);
    if (terminal_) tcsetpgrp(STDIN_FILENO, getpid());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kExitInternal);
    signal(SIGTTOU, SIG_DFL);
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    setenv("LD_LIBRARY_PATH", library_path.c_str(), 1);
    setenv("LD_PRELOAD", preload.c_str(), 1);
    if (redirect) setenv("LD_AUDIT", audit.c_str(), 1);
    setenv("ALLRANKS_SOCKET", socket.c_str(), 1);
    const bool wants_ranges =
        options_.stats || !options_.stats_json.empty() || !options_.trace.empty();
    if (wants_ranges && access(nvtx.c_str(), R_OK) == 0)
      setenv("NVTX_INJECTION64_PATH", nvtx.c_str(), 0);
    setenv("NCCL_TOPO_FILE", (folder_->path() + "/" + kTopologyFile).c_str(), 0);
    unsetenv("ALLRANKS_JOIN");
    SetLauncherDefaults(several_hosts_);
    personality(ADDR_NO_RANDOMIZE);
    execvp(argv[0], argv.data());
    const int error = errno;
    std::fprintf(stderr, "allranks: cannot run %s: %s\n", argv[0], std::strerror(error));
    _exit(error == ENOENT ? kExitNotFound : kExitCannotRun);
  }
  setpgid(program_, program_);
  GiveTerminal(program_);
  return {};
}

void Supervisor::GiveTerminal(pid_t group) {
  if (terminal_) tcsetpgrp(STDIN_FILENO, group);
}

void Supervisor::Loop() {
  if (options_.timeout_s > 0)
    timeout_at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(options_.timeout_s));
  while (!program_status_) {
    pollfd polls[2] = {{signals_.get(), POLLIN, 0}, {node_lost_ ? -1 : control_.get(), POLLIN, 0}};
    int timeout = -1;
    for (const auto& at : {kill_at_, timeout_at_}) {
      if (!at) continue;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*at - Clock::now());
      const auto ms = static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 1'000'000));
      timeout = timeout < 0 ? ms : std::min(timeout, ms);
    }
    if (poll(polls, 2, timeout) < 0 && errno != EINTR) break;
    if (polls[1].revents != 0) OnControl();
    if (polls[0].revents != 0) OnSignals();
    if (kill_at_ && Clock::now() >= *kill_at_) {
      kill(-program_, SIGKILL);
      kill_at_.reset();
    }
    if (timeout_at_ && Clock::now() >= *timeout_at_) TimeOut();
  }
}

void Supervisor::TimeOut() {
  timeout_at_.reset();
  if (program_status_ || deadlock_) return;
  timed_out_ = true;
  TellWhere(fmt::format("--timeout {:g}: the program is ended", options_.timeout_s), kPatience);
  kill(-program_, SIGKILL);
}

void Supervisor::TellWhere(const std::string& why, std::chrono::seconds patience) {
  if (node_lost_ || deadlock_) return;
  std::string text;
  if (wire::SendFrame(control_.get(), wire::Op::kWhere, 1,
                      wire::EncodePayload(wire::RequestHeader{}, wire::Where{}))) {
    const auto until = Clock::now() + patience;
    while (text.empty() && !node_lost_ && !deadlock_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
      pollfd poll_control{control_.get(), POLLIN, 0};
      if (left.count() <= 0 || poll(&poll_control, 1, static_cast<int>(left.count())) <= 0) break;
      OnControl(&text);
    }
  }
  if (deadlock_) return;  // it has told where everything stands
  deadlock_text_ = why + "; " + (text.empty() ? "the node does not answer\n" : text);
  if (!quiet_) std::fprintf(stderr, "allranks: %s", deadlock_text_.c_str());
}

void Supervisor::OnSignals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    switch (info.ssi_signo) {
      case SIGCHLD:
        Reap();
        break;
      case SIGCONT:
        break;
      default:
        if (!asked_to_end_ && !program_status_)
          TellWhere(fmt::format("received {}", SignalName(static_cast<int>(info.ssi_signo))),
                    kSignalPatience);
        kill(-program_, static_cast<int>(info.ssi_signo));
        // The program may take its time to end by a first Ctrl-C, nothing more.
        if (asked_to_end_ || info.ssi_signo != SIGINT) kill_at_ = Clock::now() + kGrace;
        if (asked_to_end_) kill(-program_, SIGKILL);
        asked_to_end_ = true;
    }
  }
}

void Supervisor::Reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (pid <= 0) return;
    if (pid == program_ && WIFSTOPPED(status)) {
      // Ctrl-Z: this process stops as well, and both go on when the shell says so.
      GiveTerminal(getpgrp());
      raise(SIGSTOP);
      if (terminal_ && tcgetpgrp(STDIN_FILENO) == getpgrp()) GiveTerminal(program_);
      kill(-program_, SIGCONT);
    } else if (WIFSTOPPED(status)) {
      continue;
    } else if (pid == program_) {
      program_status_ = status;
      GiveTerminal(getpgrp());
    } else if (pid == node_) {
      node_status_ = status;
      NodeLost();
    }
  }
}

void Supervisor::NodeLost() {
  if (node_lost_) return;
  node_lost_ = true;
  std::string how = "ended";
  if (!node_status_) {
    int status = 0;
    // Its connection closes a little before it is to be reaped.
    for (int i = 0; i < 100 && waitpid(node_, &status, WNOHANG) == 0; ++i) usleep(10'000);
    node_status_ = status;
  }
  if (WIFSIGNALED(*node_status_))
    how = fmt::format("was killed by signal {}", WTERMSIG(*node_status_));
  else
    how = fmt::format("ended with code {}", WEXITSTATUS(*node_status_));
  Say("internal error: the node {}; all further CUDA calls of the program fail", how);
  // It had its errors; if it makes nothing of them it would wait for ever.
  if (!program_status_) kill_at_ = Clock::now() + std::chrono::seconds(10);
}

void Supervisor::OnControl(std::string* where) {
  wire::Op op{};
  std::uint64_t sequence = 0;
  wire::Blob payload;
  if (!wire::ReceiveFrame(control_.get(), &op, &sequence, &payload)) return NodeLost();
  if (op == wire::Op::kWhere && where != nullptr) {
    std::span<const std::byte> bytes = payload;
    wire::ReplyHeader header;
    wire::WhereReply reply;
    if (wire::DecodeFrom(bytes, &header) && wire::DecodeFrom(bytes, &reply)) *where = reply.text;
  }
  if (op != wire::Op::kDeadlock || deadlock_) return;
  const Result<wire::Deadlock> message = wire::Decode<wire::Deadlock>(payload);
  if (!message) return;
  deadlock_ = true;
  deadlock_text_ = message->text;
  if (!quiet_) std::fprintf(stderr, "allranks: %s", message->text.c_str());
  kill(-program_, SIGKILL);
}

wire::FinishReply Supervisor::Finish() {
  if (node_lost_) return {};
  const timeval patience{(options_.trace.empty() ? kPatience : kTracePatience).count(), 0};
  setsockopt(control_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (!wire::SendFrame(control_.get(), wire::Op::kFinish, 1, wire::Encode(wire::Finish{}))) {
    NodeLost();
    return {};
  }
  for (;;) {
    wire::Op op{};
    std::uint64_t sequence = 0;
    wire::Blob payload;
    if (!wire::ReceiveFrame(control_.get(), &op, &sequence, &payload)) {
      NodeLost();
      return {};
    }
    if (op != wire::Op::kFinish) continue;
    std::span<const std::byte> bytes = payload;
    wire::ReplyHeader header;
    wire::FinishReply reply;
    if (!wire::DecodeFrom(bytes, &header) || !wire::DecodeFrom(bytes, &reply)) return {};
    return reply;
  }
}

// Everything that was started here: the node, the program's group, and orphans of it that went into
// a group of their own, which have become children of this process.
void Supervisor::EndEverything() {
  if (program_ > 0) kill(-program_, SIGKILL);
  control_ = Fd();
  if (node_ > 0 && !node_status_) {
    int status = 0;
    for (int i = 0; i < 200 && waitpid(node_, &status, WNOHANG) == 0; ++i) usleep(5'000);
    kill(node_, SIGKILL);
    waitpid(node_, &status, 0);
    node_status_ = status;
  }
  for (int round = 0; round < 100; ++round) {
    std::ifstream children(fmt::format("/proc/self/task/{}/children", getpid()));
    pid_t pid = 0;
    bool any = false;
    while (children >> pid) {
      any = true;
      kill(pid, SIGKILL);
    }
    if (!any) break;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    usleep(2'000);
  }
}

RunOutcome Supervisor::Conclude() {
  RunOutcome outcome;
  outcome.stats_json = Finish().stats_json;
  EndEverything();
  outcome.deadlock = deadlock_;
  outcome.deadlock_text = deadlock_text_;
  outcome.timeout = timed_out_;
  outcome.stopped = asked_to_end_;
  outcome.node_lost = node_lost_ || !program_status_;
  if (program_status_)
    outcome.code = WIFSIGNALED(*program_status_) ? 128 + WTERMSIG(*program_status_)
                                                 : WEXITSTATUS(*program_status_);
  if (!outcome.stats_json.empty()) outcome.findings = FindingsIn(outcome.stats_json);
  return outcome;
}

}  // namespace

RunOutcome RunOnce(const ExecOptions& options, bool quiet) {
  return Supervisor(options, quiet).Run();
}

}  // namespace allranks::cli
