// The epoll loop. Which message is handled when is not decided here but by virtual time
// (Core::Run); this file reads what is there, notices who is gone, and lets the Core run in
// between. While the Core runs the Machine a timer pauses it every 20 ms, so that a killed rank is
// noticed mid-kernel.
#include "server/node_process.h"

#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "node/findings.h"
#include "node/hardware/profile.h"
#include "server/core.h"
#include "server/judged.h"
#include "server/trace.h"
#include "wire/frame.h"

namespace allranks::server {

namespace {

constexpr int kMaxConnections = 8'192;
constexpr int kMaxStrangers = 64;  // connections of a process that have not said anything
constexpr int kMaxLogLines = 100;
constexpr std::int64_t kTickMs = 50;
constexpr int kDescriptorPollMs = 5;
constexpr int kPauseUs = 20'000;
constexpr int kAbandoned = 1;  // exit code when the supervisor has gone

std::atomic<bool> interrupt{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set by a signal handler");

std::int64_t WallMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000 + now.tv_nsec / 1'000'000;
}

// A rank that is dropped over and over must not fill the user's terminal.
void Log(const std::string& line) {
  static int lines = 0;
  if (++lines > kMaxLogLines) return;
  const std::string text =
      "allranks: " +
      (lines == kMaxLogLines ? std::string("no further messages of this kind") : line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// Interrupts the machine from time to time while it is alive.
class Pauses {
 public:
  Pauses() { Set(kPauseUs); }
  ~Pauses() { Set(0); }

 private:
  static void Set(int us) {
    const itimerval timer{{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
};

// All of a memory file, which nobody can make smaller; empty if it cannot be mapped.
std::span<std::byte> MapFile(int fd, int protection) {
  struct stat status{};
  if (fd < 0 || fstat(fd, &status) != 0 || status.st_size <= 0) return {};
  const auto size = static_cast<std::size_t>(status.st_size);
  void* at = mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? std::span<std::byte>() : std::span(static_cast<std::byte*>(at), size);
}

class NodeProcess {
 public:
  NodeProcess(const NodeOptions& options, std::unique_ptr<node::Machine> machine, Trace* trace)
      : trace_fd_(options.trace_fd),
        trace_(trace),
        listen_(options.listen_fd),
        control_(options.control_fd),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        core_(std::move(machine),
              CoreOptions{.patience_ms = options.patience_ms,
                          .ranks_per_host = options.ranks_per_host,
                          .check = options.machine.check,
                          .limits = {},
                          .log = Log,
                          .watch_process = [this](pid_t pid) { return Watch(pid); },
                          .kill_process = [this](pid_t pid) { Kill(pid); },
                          .interrupt = &interrupt,
                          .trace = trace,
                          .judged = JudgedBy(options)}) {
    CHECK(epoll_.get() >= 0);
    for (const int fd : options.judge_listen_fds) {
      judge_listen_[fd] = static_cast<int>(judge_listen_.size());
      Add(fd, EPOLLIN);
    }
    if (listen_.get() >= 0) {
      const int on = 1;
      setsockopt(listen_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
      Add(listen_.get(), EPOLLIN);
    }
    Add(control_.get(), EPOLLIN);
  }

  int Run();

 private:
  struct Connection final : Link {
    NodeProcess* owner = nullptr;
    wire::Fd fd;
    pid_t pid = 0;
    int judged = -1;  // its rank in a judged run
    bool stranger = true;
    bool closing = false;  // forgotten by the core, to be destroyed when the loop is back
    wire::FrameReader reader;
    wire::FrameWriter writer;

    void Send(wire::Op op, std::uint64_t sequence, const wire::Blob& payload,
              int send_fd) override {
      if (closing) return;
      writer.Queue(op, sequence, payload, send_fd);
      // A peer that is gone is noticed when its end is read.
      if (writer.Flush(fd.get()) && writer.queued() != 0)
        owner->Modify(fd.get(), EPOLLIN | EPOLLOUT);
    }
    void Close() override {
      closing = true;
      owner->closing_.push_back(fd.get());
    }
  };

  void Add(int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  void Modify(int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
  std::optional<JudgedOptions> JudgedBy(const NodeOptions& options);
  bool Watch(pid_t pid);
  void Kill(pid_t pid);
  void Accept();
  void AcceptJudged(int listen, int rank);
  void Known(Connection& connection);
  void Serve(Connection& connection, std::uint32_t events);
  void ServeControl();
  // One round of events; false if there were none.
  bool Dispatch(int timeout_ms);
  void Bury();
  void WriteTrace(const RunReport& report);

  wire::Fd trace_fd_;
  Trace* trace_;  // null: none is wanted
  wire::Fd listen_, control_;
  std::map<int, int> judge_listen_;  // to ranks
  wire::Fd epoll_;
  std::map<int, std::unique_ptr<Connection>> connections_;
  std::map<int, std::pair<wire::Fd, pid_t>> processes_;  // by pidfd
  std::vector<int> closing_;
  std::map<pid_t, int> strangers_;
  wire::FrameReader control_reader_;
  bool finish_asked_ = false, over_ = false, deadlock_told_ = false;
  std::uint64_t finish_sequence_ = 0;
  Core core_;
};

std::optional<JudgedOptions> NodeProcess::JudgedBy(const NodeOptions& options) {
  if (options.judge_listen_fds.empty()) return std::nullopt;
  JudgedOptions judged;
  judged.world = static_cast<int>(options.judge_listen_fds.size());
  judged.inputs = MapFile(options.judge_inputs_fd, PROT_READ);
  judged.outputs = MapFile(options.judge_outputs_fd, PROT_READ | PROT_WRITE);
  judged.inputs_fd = options.judge_inputs_fd;
  judged.outputs_fd = options.judge_outputs_fd;
  judged.libraries = options.judge_libraries;
  judged.send = [this](wire::Op op, std::uint64_t sequence, const wire::Blob& payload) {
    if (!wire::SendFrame(control_.get(), op, sequence, payload)) over_ = true;
  };
  judged.split = [] {
    const pid_t copy = fork();
    CHECK(copy >= 0);
    if (copy == 0) return true;
    int status = 0;
    while (waitpid(copy, &status, 0) < 0 && errno == EINTR) {
    }
    // Whatever ended it ends the node, so that the judge sees why.
    if (WIFSIGNALED(status)) raise(WTERMSIG(status));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) _exit(WEXITSTATUS(status) | 1);
    return false;
  };
  judged.leave = [this](bool trace) {
    if (trace && trace_ != nullptr) WriteTrace(core_.Report());
    _exit(0);
  };
  return judged;
}

bool NodeProcess::Watch(pid_t pid) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return false;  // it has ended already
  processes_.emplace(fd, std::pair{wire::Fd(fd), pid});
  Add(fd, EPOLLIN);
  return true;
}

// By descriptor: a pid may have become another process's.
void NodeProcess::Kill(pid_t pid) {
  for (const auto& [fd, process] : processes_)
    if (process.second == pid) syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0);
}

void NodeProcess::Accept() {
  for (;;) {
    wire::Fd fd(accept4(listen_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.get() < 0) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    const int on = 1;
    if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
      continue;
    if (peer.uid != getuid() || static_cast<int>(connections_.size()) >= kMaxConnections ||
        strangers_[peer.pid] >= kMaxStrangers) {
      Log(fmt::format("refused a connection of pid {}", peer.pid));
      continue;
    }
    auto connection = std::make_unique<Connection>();
    connection->owner = this;
    connection->pid = peer.pid;
    const int number = fd.get();
    connection->fd = std::move(fd);
    ++strangers_[peer.pid];
    core_.Opened(connection.get(), peer.pid);
    connections_[number] = std::move(connection);
    Add(number, EPOLLIN);
  }
}

// Who it is was decided by the socket it came through. Its pid may mean nothing here.
void NodeProcess::AcceptJudged(int listen, int rank) {
  for (;;) {
    wire::Fd fd(accept4(listen, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.get() < 0) return;
    if (core_.judged()->sealed() || static_cast<int>(connections_.size()) >= kMaxConnections ||
        strangers_[rank] >= kMaxStrangers)
      continue;
    auto connection = std::make_unique<Connection>();
    connection->owner = this;
    connection->judged = rank;
    const int number = fd.get();
    connection->fd = std::move(fd);
    ++strangers_[rank];
    core_.Opened(connection.get(), 0, rank);
    connections_[number] = std::move(connection);
    Add(number, EPOLLIN);
  }
}

void NodeProcess::Known(Connection& connection) {
  if (!connection.stranger) return;
  connection.stranger = false;
  const pid_t who = connection.judged >= 0 ? connection.judged : connection.pid;
  if (auto count = strangers_.find(who); --count->second == 0) strangers_.erase(count);
}

void NodeProcess::Serve(Connection& connection, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0 && connection.writer.Flush(connection.fd.get()) &&
      connection.writer.queued() == 0)
    Modify(connection.fd.get(), EPOLLIN);
  while (!connection.closing) {
    wire::Frame frame;
    switch (connection.reader.Read(connection.fd.get(), connection.pid, &frame)) {
      case wire::FrameReader::State::kFrame:
        Known(connection);
        core_.Received(&connection, std::move(frame));
        break;
      case wire::FrameReader::State::kMore:
        return;
      case wire::FrameReader::State::kClosed:
        core_.Closed(&connection);
        connection.Close();
        return;
      case wire::FrameReader::State::kBad:
        core_.Violated(&connection, connection.reader.error());
        return;
    }
  }
}

void NodeProcess::ServeControl() {
  while (!over_) {
    wire::Frame frame;
    switch (control_reader_.Read(control_.get(), 0, &frame)) {
      case wire::FrameReader::State::kFrame:
        if (frame.op == wire::Op::kFinish) {
          finish_asked_ = true;
          finish_sequence_ = frame.sequence;
        } else if (frame.op == wire::Op::kWhere && core_.judged() == nullptr) {
          wire::SendFrame(
              control_.get(), wire::Op::kWhere, frame.sequence,
              wire::EncodePayload(wire::ReplyHeader{}, wire::WhereReply{core_.Where()}));
        } else if (core_.judged() != nullptr && !core_.judged()->Received(frame)) {
          over_ = true;
        }
        break;
      case wire::FrameReader::State::kMore:
        return;
      case wire::FrameReader::State::kClosed:
      case wire::FrameReader::State::kBad:
        over_ = true;  // without a supervisor there is nobody to run for
        return;
    }
  }
}

bool NodeProcess::Dispatch(int timeout_ms) {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const int fd = events[i].data.fd;
    if (fd == listen_.get()) {
      Accept();
    } else if (auto judged = judge_listen_.find(fd); judged != judge_listen_.end()) {
      AcceptJudged(fd, judged->second);
    } else if (fd == control_.get()) {
      ServeControl();
    } else if (auto connection = connections_.find(fd); connection != connections_.end()) {
      if (!connection->second->closing) Serve(*connection->second, events[i].events);
    } else if (auto process = processes_.find(fd); process != processes_.end()) {
      const pid_t pid = process->second.second;
      processes_.erase(process);
      core_.ProcessExited(pid);
    }
  }
  Bury();
  return count > 0;
}

void NodeProcess::Bury() {
  for (int fd : closing_) {
    auto found = connections_.find(fd);
    if (found == connections_.end() || !found->second->closing) continue;
    Known(*found->second);
    connections_.erase(found);
  }
  closing_.clear();
}

void NodeProcess::WriteTrace(const RunReport& report) {
  core_.FinishTrace();
  bool good = true;
  trace_->Write(report.ranks, [&](std::string_view text) {
    while (good && !text.empty()) {
      const ssize_t wrote = write(trace_fd_.get(), text.data(), text.size());
      good = wrote > 0 || (wrote < 0 && errno == EINTR);
      if (wrote > 0) text.remove_prefix(static_cast<std::size_t>(wrote));
    }
  });
  if (!good) Log(fmt::format("cannot write the trace: {}", std::strerror(errno)));
  if (trace_->dropped() != 0) {
    Log(fmt::format("the trace contains the first {} slices; {} more were dropped",
                    Trace::kMaxSlices, trace_->dropped()));
  }
}

int NodeProcess::Run() {
  std::int64_t last_tick = WallMs();
  int silent_ms = 1;
  while (!over_) {
    Core::Standing standing;
    {
      Pauses pauses;
      interrupt.store(false, std::memory_order_relaxed);
      standing = core_.Run();
    }
    Bury();
    if (standing == Core::Standing::kDeadlock && !deadlock_told_) {
      deadlock_told_ = true;
      if (core_.judged() != nullptr) {
        core_.judged()->Deadlocked();
        continue;
      }
      const RunReport report = core_.Report();
      wire::Deadlock message;
      message.text = DeadlockText(report);
      message.json = DeadlockJson(report);
      if (!wire::SendFrame(control_.get(), wire::Op::kDeadlock, 0, wire::Encode(message)))
        return kAbandoned;
    }
    int timeout = -1;
    if (standing == Core::Standing::kInterrupted) {
      timeout = 0;
    } else if (standing == Core::Standing::kIdle && core_.WaitsForDescriptors()) {
      timeout = kDescriptorPollMs;
    } else if (!core_.hosts().Empty()) {
      timeout = kTickMs;
      // A thread that has just fallen asleep is noticed soon; one that computes is not disturbed.
      if (standing == Core::Standing::kHeld) {
        timeout = silent_ms;
        silent_ms = std::min<int>(2 * silent_ms, kTickMs);
      }
    }
    const bool silent = !Dispatch(timeout);
    if (!silent || (standing == Core::Standing::kHeld && core_.FindBlocked())) silent_ms = 1;
    if (standing == Core::Standing::kIdle && core_.WaitsForDescriptors()) core_.PollOutside();
    const std::int64_t wall = WallMs();
    if (wall - last_tick >= kTickMs) {
      last_tick = wall;
      core_.Tick(wall);
    }
    if (!finish_asked_) continue;
    // The program has ended, so its connections have been closed: what is to be seen is there.
    while (Dispatch(0) && !over_) {
    }
    interrupt.store(false, std::memory_order_relaxed);
    core_.Run();
    wire::FinishReply reply;
    const RunReport report = core_.Report();
    reply.stats_json = ToJson(report);
    const bool by_copies = core_.judged() != nullptr && core_.judged()->splits();
    if (trace_ != nullptr && !by_copies) WriteTrace(report);
    wire::SendFrame(control_.get(), wire::Op::kFinish, finish_sequence_,
                    wire::EncodePayload(wire::ReplyHeader{}, reply));
    return 0;
  }
  return kAbandoned;
}

}  // namespace

int RunNode(const NodeOptions& options) {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupt.store(true, std::memory_order_relaxed); };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  if ((options.listen_fd < 0) == options.judge_listen_fds.empty()) {
    Log("--listen, or --judge-listen for each rank, is required");
    return 2;
  }
  Result<node::Profile> profile = node::LoadProfile(options.profile);
  if (!profile) {
    Log(profile.error().message);
    return 2;
  }
  Trace trace;
  node::MachineOptions machine_options = options.machine;
  machine_options.secret = options.secret;
  // Ranks fill one host after the other.
  if (const auto world = static_cast<std::int64_t>(options.judge_listen_fds.size()); world > 0)
    machine_options.devices = static_cast<int>(std::min(world, profile->machine.devices_per_host));
  for (const std::string& text : options.faults) {
    const auto fault = node::ParseFault(text);
    if (!fault) {
      Log(fault.error().message);
      return 2;
    }
    machine_options.faults.push_back(*fault);
    trace.Plan(text, fault->at);
  }
  const bool traced = options.trace_fd >= 0;
  if (traced) machine_options.listener = &trace;
  Result<std::unique_ptr<node::Machine>> machine = node::Machine::Create(*profile, machine_options);
  if (!machine) {
    Log(machine.error().message);
    return 2;
  }
  trace.Attach((*machine)->profile());
  const int code = NodeProcess(options, std::move(*machine), traced ? &trace : nullptr).Run();
  if (code == kAbandoned && !options.folder.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(options.folder, ignored);
  }
  return code;
}

}  // namespace allranks::server
