// Sessions, the loop and the answers. core.h has the theory.
#include "server/core.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "node/findings.h"

namespace allranks::server {

using node::Hosts;
using node::Ns;

namespace {

// The calls with which CUDA writes out what kernels have printed.
bool FlushesText(wire::Op op) {
  switch (op) {
    case wire::Op::kLaunch:
    case wire::Op::kLaunchGraph:
    case wire::Op::kStreamSync:
    case wire::Op::kEventSync:
    case wire::Op::kDeviceSync:
    case wire::Op::kCopy:
    case wire::Op::kCopyIn:
    case wire::Op::kCopyOut:
    case wire::Op::kLoadModule:
    case wire::Op::kUnloadModule:
    case wire::Op::kResetDevice:
      return true;
    default:
      return false;
  }
}

// CPU time of a call that only concerns hosts (a join, a wake-up, a yield): about a system call.
// Not in the profile, which describes devices; only its being small matters.
constexpr node::Time kHostCall = Ns(100);
// Reads of the clock cannot have cost more than this between two messages.
constexpr node::Time kMaxLocal = node::Ms(3'600'000);
constexpr std::int64_t kStalled = 500;  // wall ms
constexpr std::size_t kMaxFaults = 1'000;

Hosts::Options HostOptions(const CoreOptions& options) {
  Hosts::Options result;
  result.min_cost = kHostCall;
  result.patience_ms = options.patience_ms;
  return result;
}

}  // namespace

Core::Core(std::unique_ptr<node::Machine> machine, CoreOptions options)
    : options_(std::move(options)),
      machine_(std::move(machine)),
      checking_(options_.check ? dynamic_cast<node::Checking*>(machine_.get()) : nullptr),
      hosts_(HostOptions(options_),
             {[this](Thread thread, Time at) { ThreadEnded(thread, at); },
              [this](std::int32_t rank, Time at) { ProcessEnded(rank, at); }}) {
  if (options_.interrupt != nullptr) machine_->SetInterrupt(options_.interrupt);
  machine_->SetHostCaller([this](const node::HostCall& call, Time at) { HostCallDue(call, at); });
  machine_->SetRankKiller([this](int rank, Time at) { KillRank(rank, at); });
  if (options_.judged) judged_ = std::make_unique<Judged>(*this, *options_.judged);
}

Core::~Core() = default;

// --- sessions
// ---------------------------------------------------------------------------------------

void Core::Opened(Link* link, pid_t pid, int judged) {
  sessions_[link] = Session{pid, {}, false, judged};
}

void Core::Drop(Link* link) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  if (auto record = threads_.find(found->second.thread); record != threads_.end())
    record->second.link = nullptr;
  sessions_.erase(found);
  link->Close();
}

// What a peer may do wrong harms only itself: its own connection, and the process that it has
// proved to belong to.
void Core::Violation(Link* link, const std::string& why) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  const Session session = found->second;
  if (options_.log) {
    options_.log(session.thread.rank < 0
                     ? fmt::format("a connection of pid {} was closed: {}", session.pid, why)
                     : fmt::format("rank {} (pid {}) was dropped: {}", session.thread.rank,
                                   session.pid, why));
  }
  Drop(link);
  if (session.judged >= 0) judged_->Violated(session.judged, why);
  if (session.thread.rank >= 0) hosts_.EndProcess(session.thread.rank);
}

void Core::Closed(Link* link) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  const Thread thread = found->second.thread;
  sessions_.erase(found);
  auto record = threads_.find(thread);
  if (record == threads_.end()) return;
  record->second.link = nullptr;
  Process& process = processes_.at(thread.rank);
  if (process.exec_token != 0 && process.exec_thread == thread) {
    ReplaceImage(process);
  } else if (process.watched) {
    // The kernel closes a process's files one after the other: somebody may still read as open the
    // pipe that this one's end is about to close.
    hosts_.Closing(thread);
  } else {
    hosts_.Gone(thread);
  }
}

void Core::Received(Link* link, wire::Frame frame) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  if (!session.said_hello) {
    if (frame.op != wire::Op::kHello) return Violation(link, "its first message is no hello");
    return AcceptHello(link, session, frame);
  }
  auto record = threads_.find(session.thread);
  if (record == threads_.end()) return Violation(link, "a message of a thread that has ended");
  if (record->second.asked)
    return Violation(link, "a second request before the first was answered");
  if (Process& process = ProcessOf(session.thread); process.machine && process.pinned)
    machine_->HostWrote(*process.machine, hosts_.now());
#define ALLRANKS_ACCEPT(M) \
  case wire::M::kOp:       \
    return Accept<wire::M>(link, session, frame);
  switch (frame.op) {
    ALLRANKS_ACCEPT(NewThread)
    ALLRANKS_ACCEPT(ThreadExit)
    ALLRANKS_ACCEPT(WaitThread)
    ALLRANKS_ACCEPT(NewProcess)
    ALLRANKS_ACCEPT(ProcessStarted)
    ALLRANKS_ACCEPT(Exec)
    ALLRANKS_ACCEPT(WaitProcess)
    ALLRANKS_ACCEPT(WaitFd)
    ALLRANKS_ACCEPT(Sleep)
    ALLRANKS_ACCEPT(Yield)
    ALLRANKS_ACCEPT(BarrierWait)
    ALLRANKS_ACCEPT(WatchKey)
    ALLRANKS_ACCEPT(UnwatchKey)
    ALLRANKS_ACCEPT(WaitKey)
    ALLRANKS_ACCEPT(WakeKey)
    ALLRANKS_ACCEPT(HostPoll)
    ALLRANKS_ACCEPT(BootstrapBarrier)
    ALLRANKS_ACCEPT(Init)
    ALLRANKS_ACCEPT(PutImage)
    ALLRANKS_ACCEPT(DropImage)
    ALLRANKS_ACCEPT(LoadModule)
    ALLRANKS_ACCEPT(UnloadModule)
    ALLRANKS_ACCEPT(GetKernel)
    ALLRANKS_ACCEPT(GetGlobal)
    ALLRANKS_ACCEPT(SetMaxDynamicShared)
    ALLRANKS_ACCEPT(SetLimit)
    ALLRANKS_ACCEPT(Occupancy)
    ALLRANKS_ACCEPT(Alloc)
    ALLRANKS_ACCEPT(Free)
    ALLRANKS_ACCEPT(AllocPinned)
    ALLRANKS_ACCEPT(FreePinned)
    ALLRANKS_ACCEPT(Describe)
    ALLRANKS_ACCEPT(IpcExport)
    ALLRANKS_ACCEPT(IpcOpen)
    ALLRANKS_ACCEPT(IpcClose)
    ALLRANKS_ACCEPT(CanAccessPeer)
    ALLRANKS_ACCEPT(EnablePeer)
    ALLRANKS_ACCEPT(DisablePeer)
    ALLRANKS_ACCEPT(MemInfo)
    ALLRANKS_ACCEPT(StickyError)
    ALLRANKS_ACCEPT(ResetDevice)
    ALLRANKS_ACCEPT(CreateStream)
    ALLRANKS_ACCEPT(DestroyStream)
    ALLRANKS_ACCEPT(StreamQuery)
    ALLRANKS_ACCEPT(StreamSync)
    ALLRANKS_ACCEPT(CreateEvent)
    ALLRANKS_ACCEPT(DestroyEvent)
    ALLRANKS_ACCEPT(RecordEvent)
    ALLRANKS_ACCEPT(WaitEvent)
    ALLRANKS_ACCEPT(EventQuery)
    ALLRANKS_ACCEPT(EventSync)
    ALLRANKS_ACCEPT(EventElapsed)
    ALLRANKS_ACCEPT(DeviceSync)
    ALLRANKS_ACCEPT(Launch)
    ALLRANKS_ACCEPT(Copy)
    ALLRANKS_ACCEPT(CopyIn)
    ALLRANKS_ACCEPT(CopyOut)
    ALLRANKS_ACCEPT(Memset)
    ALLRANKS_ACCEPT(DefaultPool)
    ALLRANKS_ACCEPT(CreatePool)
    ALLRANKS_ACCEPT(DestroyPool)
    ALLRANKS_ACCEPT(GetPoolAttribute)
    ALLRANKS_ACCEPT(SetPoolAttribute)
    ALLRANKS_ACCEPT(TrimPool)
    ALLRANKS_ACCEPT(SetPoolAccess)
    ALLRANKS_ACCEPT(GetPoolAccess)
    ALLRANKS_ACCEPT(AllocAsync)
    ALLRANKS_ACCEPT(FreeAsync)
    ALLRANKS_ACCEPT(RegisterHost)
    ALLRANKS_ACCEPT(Prefetch)
    ALLRANKS_ACCEPT(CallHost)
    ALLRANKS_ACCEPT(NextHostCall)
    ALLRANKS_ACCEPT(StreamValues)
    ALLRANKS_ACCEPT(PutGraph)
    ALLRANKS_ACCEPT(UpdateGraph)
    ALLRANKS_ACCEPT(DropGraph)
    ALLRANKS_ACCEPT(LaunchGraph)
    ALLRANKS_ACCEPT(ListKernels)
    ALLRANKS_ACCEPT(SetVisible)
    ALLRANKS_ACCEPT(ExportEvent)
    ALLRANKS_ACCEPT(OpenEvent)
    ALLRANKS_ACCEPT(CreateMemory)
    ALLRANKS_ACCEPT(ReleaseMemory)
    ALLRANKS_ACCEPT(RetainMemory)
    ALLRANKS_ACCEPT(MemoryInfo)
    ALLRANKS_ACCEPT(ExportMemory)
    ALLRANKS_ACCEPT(ImportMemory)
    ALLRANKS_ACCEPT(ReserveAddress)
    ALLRANKS_ACCEPT(FreeAddress)
    ALLRANKS_ACCEPT(MapMemory)
    ALLRANKS_ACCEPT(UnmapMemory)
    ALLRANKS_ACCEPT(SetMemoryAccess)
    ALLRANKS_ACCEPT(GetMemoryAccess)
    ALLRANKS_ACCEPT(CreateMulticast)
    ALLRANKS_ACCEPT(AddMulticastDevice)
    ALLRANKS_ACCEPT(BindMulticast)
    ALLRANKS_ACCEPT(UnbindMulticast)
    ALLRANKS_ACCEPT(ExportPool)
    ALLRANKS_ACCEPT(ImportPool)
    ALLRANKS_ACCEPT(ExportPointer)
    ALLRANKS_ACCEPT(ImportPointer)
#define ALLRANKS_ACCEPT_JUDGED(M)  \
  case wire::M::kOp:               \
    if (judged_ == nullptr) break; \
    return Accept<wire::M>(link, session, frame);
    ALLRANKS_ACCEPT_JUDGED(JudgeNext)
    ALLRANKS_ACCEPT_JUDGED(JudgeOpen)
    ALLRANKS_ACCEPT_JUDGED(JudgeClose)
    ALLRANKS_ACCEPT_JUDGED(JudgeGather)
    ALLRANKS_ACCEPT_JUDGED(JudgeHostStep)
#undef ALLRANKS_ACCEPT_JUDGED
    case wire::Op::kNone:
    case wire::Op::kHello:
    case wire::Op::kFinish:
    case wire::Op::kDeadlock:
    case wire::Op::kJudgePlan:
    case wire::Op::kJudgeRun:
    case wire::Op::kJudgeNews:
      break;
  }
#undef ALLRANKS_ACCEPT
  Violation(link, fmt::format("'{}' is not for a rank to send", wire::OpName(frame.op)));
}

// Compiled once per message: what is the same for all of them is in Ask and Refused.
template <class M>
void Core::Accept(Link* link, Session& session, wire::Frame& frame) {
  std::span<const std::byte> bytes = frame.payload;
  wire::RequestHeader header;
  auto message = std::make_shared<M>();
  const bool good =
      wire::DecodeFrom(bytes, &header) && wire::DecodeFrom(bytes, message.get()) && bytes.empty();
  Ask(link, session, frame, good ? &header : nullptr, [this, message](Thread thread, Time at) {
    constexpr bool kAsks =
        std::is_same_v<M, wire::StickyError> || std::is_same_v<M, wire::ResetDevice> ||
        std::is_same_v<M, wire::CanAccessPeer> || std::is_same_v<M, wire::MemInfo>;
    int device = -1;
    std::uint64_t stream = 0;
    if constexpr (kAsks) {
    } else if constexpr (requires { message->stream.device; }) {
      device = message->stream.device;
      stream = message->stream.stream;
    } else if constexpr (requires { message->device; }) {
      device = message->device;
    }
    const node::Status refused = Refused(
        thread, judged_ != nullptr ? judged_->Refusal(thread, *message) : "", device, stream);
    if (refused != node::Status::kSuccess) return Fail<M>(thread, refused);
    Handle(thread, *message, at);
  });
}

void Core::Ask(Link* link, Session& session, wire::Frame& frame, const wire::RequestHeader* header,
               std::function<void(Thread, Time)> carry_out) {
  if (header == nullptr || header->local_ps < 0 || header->local_ps > kMaxLocal)
    return Violation(link, fmt::format("a malformed '{}'", wire::OpName(frame.op)));
  const Thread thread = session.thread;
  ThreadRecord& record = threads_.at(thread);
  record.asked = true;
  record.op = frame.op;
  record.sequence = frame.sequence;
  record.fds = std::move(frame.fds);
  const bool keeps_series = frame.op == wire::Op::kStreamQuery ||
                            frame.op == wire::Op::kEventQuery || frame.op == wire::Op::kYield;
  if (!keeps_series) record.series = {};
  const Time cost = CostOf(frame.op);
  const bool accepted =
      hosts_.Request(thread, header->local_ps + cost, wire::OpName(frame.op),
                     [this, thread, cost, carry_out = std::move(carry_out)](Time at) {
                       if (options_.trace != nullptr) threads_[thread].since = at - cost;
                       Meet(thread);
                       carry_out(thread, at);
                     });
  if (!accepted) Violation(link, "a message of a thread that does not run");
}

// A context that has failed answers everything that would use it with its error.
node::Status Core::Refused(Thread thread, const std::string& why, int device,
                           std::uint64_t stream) const {
  if (!why.empty()) {
    judged_->Forbidden(thread.rank, why);
    return node::Status::kNotPermitted;
  }
  const Process& process = processes_.at(thread.rank);
  if (stream != 0) {
    const auto known = process.streams.find(stream);
    if (known == process.streams.end()) return node::Status::kSuccess;
    device = known->second;
  }
  if (device < 0 || !process.machine || device >= machine_->DeviceCount(*process.machine))
    return node::Status::kSuccess;
  return machine_->StickyError(*process.machine, device);
}

void Core::AcceptHello(Link* link, Session& session, wire::Frame& frame) {
  std::span<const std::byte> bytes = frame.payload;
  wire::RequestHeader header;
  auto hello = std::make_shared<wire::Hello>();
  if (!wire::DecodeFrom(bytes, &header) || !wire::DecodeFrom(bytes, hello.get()) || !bytes.empty())
    return Violation(link, "a malformed hello");
  if (hello->protocol != wire::kProtocolVersion)
    return Violation(link, fmt::format("protocol {}", hello->protocol));
  Thread thread;
  if (judged_ != nullptr) {
    const auto joined = JoinJudged(session, *hello);
    if (!joined) return Violation(link, "a process that is not the rank's own, or a second one");
    thread = *joined;
  } else if (hello->kind == wire::Hello::Kind::kRoot) {
    if (static_cast<int>(processes_.size()) >= options_.limits.processes)
      return Violation(link, "too many processes");
    // When it came is a matter of wall time, unless it is alone.
    if (!hosts_.Empty()) hosts_.LoseDeterminism("a process joined that no other had announced");
    const std::int32_t rank = hosts_.AddProcess();
    Process& process = processes_[rank];
    process.rank = rank;
    process.token = NewToken();
    tokens_[process.token] = rank;
    ++processes_seen_;
    thread = hosts_.AddThread(rank);
    threads_[thread];
  } else {
    auto token = tokens_.find(hello->token);
    if (token == tokens_.end()) return Violation(link, "an unknown token");
    Process& process = processes_.at(token->second);
    const bool exec = hello->kind == wire::Hello::Kind::kExec;
    if (exec != (hello->token == process.exec_token))
      return Violation(link, "a token of another kind");
    if (exec) {
      if (process.pid != session.pid) return Violation(link, "another process's token");
      thread = process.exec_thread;
      ReplaceImage(process);  // unless the old connections have been seen to close already
      tokens_.erase(process.exec_token);
      process.exec_token = 0;
    } else {
      const bool child = hello->kind == wire::Hello::Kind::kChild;
      thread = {process.rank, child ? 1 : static_cast<std::uint32_t>(hello->thread)};
      // The first thread of an announced process gives it its pid; all others must have the same.
      if (process.pid != 0 && process.pid != session.pid)
        return Violation(link, "another process's token");
    }
    auto record = threads_.find(thread);
    if (record == threads_.end() || record->second.link != nullptr || record->second.asked)
      return Violation(link, "a thread that nobody announced");
  }
  if (hello->kind != wire::Hello::Kind::kThread && judged_ == nullptr)
    PlaceImage(processes_.at(thread.rank), *hello);
  ThreadRecord& record = threads_.at(thread);
  record.link = link;
  record.asked = true;
  record.op = wire::Op::kHello;
  record.sequence = frame.sequence;
  session.thread = thread;
  session.said_hello = true;
  Process& process = processes_.at(thread.rank);
  if (process.pid == 0 && judged_ == nullptr) {
    process.pid = session.pid;
    process.watched = options_.watch_process && options_.watch_process(process.pid);
    if (auto parent = processes_.find(process.parent); parent != processes_.end())
      for (Child& child : parent->second.children)
        if (child.rank == process.rank) child.pid = process.pid;
  }
  if (!hosts_.Request(thread, 0, "hello",
                      [this, thread, hello](Time at) { Handle(thread, *hello, at); }))
    Violation(link, "a thread that nobody announced");
}

std::optional<Core::Thread> Core::JoinJudged(const Session& session, const wire::Hello& hello) {
  if (session.judged < 0) return std::nullopt;
  if (hello.kind == wire::Hello::Kind::kRoot) return judged_->Join(session.judged);
  const auto token = tokens_.find(hello.token);
  if (hello.kind != wire::Hello::Kind::kThread || token == tokens_.end() ||
      token->second != session.judged)
    return std::nullopt;
  const Thread thread{session.judged, static_cast<std::uint32_t>(hello.thread)};
  const auto record = threads_.find(thread);
  const bool announced = record != threads_.end() && record->second.link == nullptr &&
                         !record->second.asked && hello.thread == thread.number;
  return announced ? std::optional(thread) : std::nullopt;
}

// What a real process finds out once, or without asking anybody, is free: when a shim asks is its
// own affair. Answers still come in order.
node::Time Core::CostOf(wire::Op op) const {
  switch (op) {
    case wire::Op::kProcessStarted:
    case wire::Op::kThreadExit:
    case wire::Op::kWatchKey:
    case wire::Op::kUnwatchKey:
    case wire::Op::kNextHostCall:
    case wire::Op::kPutGraph:
    case wire::Op::kUpdateGraph:
    case wire::Op::kDropGraph:
    case wire::Op::kListKernels:
    case wire::Op::kSetVisible:
    case wire::Op::kInit:
    case wire::Op::kPutImage:
    case wire::Op::kDropImage:
    case wire::Op::kLoadModule:
    case wire::Op::kUnloadModule:
    case wire::Op::kGetKernel:
    case wire::Op::kGetGlobal:
    case wire::Op::kSetMaxDynamicShared:
    case wire::Op::kOccupancy:
    case wire::Op::kDescribe:
    case wire::Op::kCanAccessPeer:
    case wire::Op::kMemInfo:
    case wire::Op::kStickyError:
    case wire::Op::kDefaultPool:
    case wire::Op::kGetPoolAttribute:
    case wire::Op::kGetPoolAccess:
    case wire::Op::kMemoryInfo:
    case wire::Op::kGetMemoryAccess:
    case wire::Op::kJudgeNext:
    case wire::Op::kJudgeOpen:
    case wire::Op::kJudgeClose:
    case wire::Op::kJudgeGather:
    case wire::Op::kJudgeHostStep:
      return 0;
    case wire::Op::kLaunch:
      return std::max(kHostCall, machine_->profile().launch.host_call);
    case wire::Op::kLaunchGraph:
      return std::max(kHostCall, machine_->profile().launch.graph_call);
    default:
      return op > wire::Op::kInit ? std::max(kHostCall, machine_->profile().launch.api_call)
                                  : kHostCall;
  }
}

// What one process's host code has waited for may be known to another's from here on. By which way
// they talk (a pipe, shared memory, MPI) is not always visible here, but whoever hears of something
// makes its next call after the other's has been answered: so all calls count as such meetings,
// in the order in which they are handled. Judged ranks have no such ways; judged.cpp says when they
// meet.
void Core::Meet(Thread thread) {
  if (checking_ == nullptr || judged_ != nullptr) return;
  const auto process = processes_.find(thread.rank);
  if (process != processes_.end() && process->second.machine)
    checking_->HostMeets(*process->second.machine);
}

void Core::SendReply(Thread thread, node::Status status, const wire::Blob& body, int fd) {
  auto found = threads_.find(thread);
  if (found == threads_.end()) return;
  ThreadRecord& record = found->second;
  Meet(thread);
  if (judged_ != nullptr) judged_->Answered(thread.rank, status);
  Release(record, thread);
  record.asked = false;
  if (record.since && options_.trace != nullptr)
    options_.trace->OnCall(thread, wire::OpName(record.op), *record.since, hosts_.now());
  record.since.reset();
  if (record.link != nullptr) {
    wire::ReplyHeader header;
    header.status = static_cast<std::int32_t>(status);
    // Instrumented host code says itself what it looks at; its pages stay open.
    header.busy = machine_->Busy() && (judged_ == nullptr || !judged_->host_window());
    header.clock = hosts_.now();
    if (FlushesText(record.op)) {
      if (const auto process = processes_.find(thread.rank);
          process != processes_.end() && process->second.machine) {
        const std::size_t room =
            wire::kMaxPayload - std::min<std::size_t>(wire::kMaxPayload, body.size() + 1024);
        node::DeviceText text = machine_->TakeText(*process->second.machine, room);
        if (judged_ == nullptr) {
          header.out = std::move(text.out);
          header.err = std::move(text.err);
        }
      }
    }
    wire::Blob payload;
    payload.reserve(16 + body.size());
    wire::EncodeTo(header, payload);
    payload.insert(payload.end(), body.begin(), body.end());
    record.link->Send(record.op, record.sequence, payload, fd);
  }
  ran_natively_ = true;
  hosts_.Resume(thread);
}

// Whatever the thread waited for no longer needs to know of it.
void Core::Release(ThreadRecord& record, Thread thread) {
  if (record.when_done != 0) machine_->CancelWhenDone(std::exchange(record.when_done, 0));
  if (record.watch != 0) machine_->Unwatch(std::exchange(record.watch, 0));
  record.in_wait_key = false;
  if (!record.fds.empty()) {
    record.fds.clear();
    descriptor_waits_.erase(thread);
  }
}

// --- the loop
// ---------------------------------------------------------------------------------------

Core::Standing Core::Run() {
  for (;;) {
    if (deadlock_) return Standing::kDeadlock;
    if (judged_ != nullptr && !judged_->planned()) return Standing::kIdle;
    if (judged_ != nullptr && judged_->RunsGraphs()) {
      const bool more = RunMachine(std::nullopt);
      if (!more) {
        judged_->GraphsOver();
      } else if (options_.interrupt != nullptr &&
                 options_.interrupt->load(std::memory_order_relaxed)) {
        return Standing::kInterrupted;
      }
      continue;
    }
    if (hosts_.Empty()) return Standing::kIdle;
    if (hosts_.Held()) return Standing::kHeld;
    if ((ran_natively_ || hosts_.AnyDetached()) && PollDescriptors()) continue;
    const std::optional<Time> due = hosts_.Due();
    if (!due || machine_->now() < *due) {
      const bool more = RunMachine(due);
      if (options_.interrupt != nullptr && options_.interrupt->load(std::memory_order_relaxed))
        return Standing::kInterrupted;
      if (hosts_.Due() != due) continue;  // a wait was over
      if (!due) {
        if (more) continue;
        if (judged_ != nullptr && judged_->WaitsForJudge()) return Standing::kIdle;
        deadlock_ =
            hosts_.AllWaitForNode() || (hosts_.AllWait() && Outside(false) == Reach::kNobody);
        if (deadlock_) continue;
        return Standing::kIdle;
      }
      if (more && machine_->now() < *due) continue;  // it stopped for nothing
    }
    const bool stuck = DevicesStuck();
    if (stuck && hosts_.NobodyActs()) {
      deadlock_ = true;
      continue;
    }
    quiet_ = stuck && hosts_.NobodyActs(/*outside=*/true);
    hosts_.Process();
  }
}

// Lets the devices work up to `due`, or as long as there is anything to do. Where it is interrupted
// makes no difference, but a limit would: paths do not run ahead of it. So the limits must not
// depend on when interrupts came. False if nothing is left to happen.
bool Core::RunMachine(std::optional<Time> due) {
  const bool more = machine_->RunUntil(due.value_or(node::kTimeNever));
  hosts_.AdvanceTo(due ? std::min(machine_->now(), *due) : machine_->now());
  for (node::Fault& fault : machine_->TakeFaults())
    if (faults_.size() < kMaxFaults) faults_.push_back(std::move(fault));
  return more;
}

bool Core::Tick(std::int64_t wall_ms) {
  if (judged_ != nullptr) return false;  // the judge has its own clock for what takes too long
  // Ranks that wait for each other through sockets, or that a launcher looks after, while their
  // devices are stuck: no proof, but after so long of nothing but timeouts, no doubt.
  const bool stalled =
      (quiet_ || (hosts_.AllWait() && !descriptor_waits_.empty())) && DevicesStuck();
  if (!stalled) {
    stalled_since_.reset();
  } else if (!stalled_since_ || stalled_acts_ != hosts_.acts()) {
    stalled_since_ = wall_ms;
    stalled_acts_ = hosts_.acts();
  } else if (!deadlock_ && wall_ms - *stalled_since_ >= kStalled &&
             Outside(true) != Reach::kSomebody) {
    deadlock_ = true;
    return true;
  }
  // A thread that spins on pinned memory in a way that the shim does not recognise waits for
  // devices that stand still because it runs.
  const bool busy = machine_->Busy();
  return hosts_.Tick(wall_ms, [&](std::int32_t rank) {
    auto process = processes_.find(rank);
    return busy && process != processes_.end() && process->second.pinned;
  });
}

bool Core::DevicesStuck() const {
  // Instrumented host code that polls for what idle devices will never do waits for ever, too.
  if (!machine_->Busy()) return judged_ != nullptr && judged_->host_window();
  return machine_->Stuck();
}

bool Core::PollDescriptors() {
  ran_natively_ = false;
  bool any = false;
  for (auto next = descriptor_waits_.begin(); next != descriptor_waits_.end();) {
    const Thread thread = *next++;
    ThreadRecord& record = threads_.at(thread);
    std::vector<pollfd> polls;
    for (std::size_t i = 0; i < record.fds.size(); ++i)
      polls.push_back({record.fds[i].get(), record.fd_events[i], 0});
    if (poll(polls.data(), polls.size(), 0) <= 0) continue;
    descriptor_waits_.erase(thread);
    any = true;
    hosts_.WakeAt(thread, hosts_.now(),
                  [this, thread](Time) { Reply<wire::WaitFd>(thread, {.ready = true}); });
  }
  return any;
}

void Core::Handle(Thread thread, const wire::JudgeNext& message, Time at) {
  judged_->Handle(thread, message, at);
}
void Core::Handle(Thread thread, const wire::JudgeOpen& message, Time at) {
  judged_->Handle(thread, message, at);
}
void Core::Handle(Thread thread, const wire::JudgeClose& message, Time at) {
  judged_->Handle(thread, message, at);
}
void Core::Handle(Thread thread, const wire::JudgeGather& message, Time at) {
  judged_->Handle(thread, message, at);
}
void Core::Handle(Thread thread, const wire::JudgeHostStep& message, Time at) {
  judged_->Handle(thread, message, at);
}

Reach Core::Outside(bool device_users) const {
  std::vector<Held> fds;
  std::vector<pid_t> ours;
  for (Thread thread : descriptor_waits_) {
    const Process& process = processes_.at(thread.rank);
    if (device_users && !process.machine) continue;
    for (const wire::Fd& fd : threads_.at(thread).fds) fds.push_back({fd.get(), process.pid});
  }
  for (const auto& [rank, process] : processes_) ours.push_back(process.pid);
  return WhoElseHolds(fds, ours);
}

void Core::FinishTrace() {
  if (options_.trace == nullptr) return;
  for (auto& [thread, record] : threads_) {
    if (!record.since) continue;
    options_.trace->OnCall(thread, wire::OpName(record.op), *record.since, hosts_.now());
    record.since.reset();
  }
  options_.trace->Finish(hosts_.now());
}

std::vector<node::Finding> Core::TakeFindings() {
  std::vector<node::Finding> findings;
  if (checking_ == nullptr) return findings;
  findings = checking_->TakeFindings();
  std::error_code error;
  std::string folder = std::filesystem::current_path(error).string();
  if (!folder.ends_with('/')) folder += '/';
  for (node::Finding& finding : findings) {
    if (folder != "/") node::ReplacePaths(folder, "", &finding);
    for (node::FindingAccess& access : finding.accesses) access.kernel = Demangle(access.kernel);
  }
  return findings;
}

RunReport Core::Report() {
  RunReport report;
  report.profile = machine_->profile().name;
  report.virtual_time = hosts_.now();
  report.deterministic = hosts_.deterministic();
  report.reasons = hosts_.reasons();
  report.processes = processes_seen_;
  report.stats = &machine_->stats();
  for (node::Fault& fault : machine_->TakeFaults())
    if (faults_.size() < kMaxFaults) faults_.push_back(std::move(fault));
  report.faults = faults_;
  report.ranks.insert(machine_ranks_.begin(), machine_ranks_.end());
  report.checked = checking_ != nullptr;
  node::Fold(TakeFindings(), &findings_);
  report.findings = findings_;
  report.deadlock = deadlock_;
  if (deadlock_) {
    report.waiters = machine_->Waiters();
    report.hosts = hosts_.Threads();
    const bool launched = std::any_of(processes_.begin(), processes_.end(),
                                      [](const auto& entry) { return entry.second.label >= 0; });
    for (node::Hosts::ThreadInfo& thread : report.hosts)
      if (auto process = processes_.find(thread.id.rank); launched && process != processes_.end())
        thread.id.rank = process->second.label;
  }
  return report;
}

}  // namespace allranks::server
