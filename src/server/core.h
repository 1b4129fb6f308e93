// The node's front desk: requests of host threads in, calls of the Machine, replies out. It is the
// server without its sockets, so that tests and the fuzzer can drive it with frames.
//
// Theory of operation. A frame is decoded as soon as it has come (what cannot be decoded ends its
// process, see Violation), but is handled only when node::Hosts says that its virtual time has
// come. Run() is the loop that lets virtual time pass: as long as no thread runs, it takes the
// earliest item of Hosts, runs the Machine up to its time, and handles it. A handler answers at
// once, which lets the thread run and so ends Run(), or it leaves the thread waiting: for
// operations (Machine::WhenDone), for pinned memory (WatchHost), for other threads (joins, keys,
// barriers), for a time, or for descriptors.
//
// Descriptors are the one thing that changes without the node: they are looked at after any thread
// has run natively and before time passes. Then nobody else can have written to them, unless
// somebody outside did.
//
// Everything a process owns here dies with it (ProcessEnded); a handler may therefore find its
// thread gone when a callback comes, and all callbacks go by HostThread, never by pointer.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "node/checking.h"
#include "node/hosts.h"
#include "node/machine.h"
#include "server/host_sites.h"
#include "server/judged.h"
#include "server/outside.h"
#include "server/report.h"
#include "server/trace.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace allranks::server {

// What the core needs of a connection. `fd` need not stay open after Send.
class Link {
 public:
  virtual ~Link() = default;
  virtual void Send(wire::Op op, std::uint64_t sequence, const wire::Blob& payload, int fd) = 0;
  // The core has forgotten the link already.
  virtual void Close() = 0;
};

struct CoreLimits {
  int processes = 1024;           // alive at a time
  int threads = 1024;             // of a process
  std::size_t children = 65'536;  // of a process, whose end it has not asked for
  std::size_t objects = 1 << 20;  // streams, events, modules and allocations of a process, each
  std::uint64_t image_bytes = 1ull << 30;
  std::uint64_t queued_bytes = 256ull << 20;  // of copies under way; what is beyond waits
  std::size_t keys = 1024;                    // registrations of a thread
};

struct CoreOptions {
  std::int64_t patience_ms = 3'000;
  // Ranks of a launcher fill the simulated hosts one after the other, so many on each; 0: one for
  // each device.
  int ranks_per_host = 0;
  bool check = false;  // the machine was made to check: its findings are asked for
  CoreLimits limits;
  std::function<void(const std::string&)> log;
  // A process is known by this pid from now on. True: ProcessExited will be called when it has
  // ended and everything it had open is closed. Else the end of its connections counts for that.
  std::function<bool(pid_t)> watch_process;
  std::function<void(pid_t)> kill_process;  // for ranks that a planned fault ends
  const std::atomic<bool>* interrupt = nullptr;
  Trace* trace = nullptr;               // is told of calls; null: nobody asked
  std::optional<JudgedOptions> judged;  // a judged run; pids mean nothing then
};

// Parts of messages as the machine wants them.
node::Rows RowsOf(const wire::Rows& rows);
std::vector<node::ValueOp> ValuesOf(const std::vector<wire::ValueOp>& messages);

class Core {
 public:
  enum class Standing {
    kHeld,         // threads run: wait for their messages
    kIdle,         // nobody is there, or only something outside can help
    kInterrupted,  // the machine was paused: look at the sockets, then go on
    kDeadlock,
  };

  Core(std::unique_ptr<node::Machine> machine, CoreOptions options);
  ~Core();

  // A link must stay alive until Closed() or its Close().
  // `judged`: the rank whose socket it came through, in a judged run.
  void Opened(Link* link, pid_t pid, int judged = -1);
  void Received(Link* link, wire::Frame frame);
  void Closed(Link* link);
  // The stream of bytes was no longer frames.
  void Violated(Link* link, const std::string& why) { Violation(link, why); }
  void ProcessExited(pid_t pid);

  Standing Run();
  // Looks for threads that are asleep without a message; true if Run() may have something to do.
  bool FindBlocked();
  // Wall time, for silent threads; true if Run() may have something to do again.
  bool Tick(std::int64_t wall_ms);
  // True if a descriptor that threads wait for has become ready.
  bool PollOutside() { return PollDescriptors(); }
  bool WaitsForDescriptors() const { return !descriptor_waits_.empty(); }

  node::Machine& machine() { return *machine_; }
  Judged* judged() { return judged_.get(); }  // null: this is no judged run
  const node::Hosts& hosts() const { return hosts_; }
  std::size_t process_count() const { return processes_.size(); }

  RunReport Report();
  // What the checker has found since the last call: readable names, paths below the current folder
  // without it.
  std::vector<node::Finding> TakeFindings();
  // Closes the trace's calls that have not returned.
  void FinishTrace();

 private:
  friend class Judged;
  using Thread = node::HostThread;
  using Time = node::Time;

  struct Session {
    pid_t pid = 0;
    Thread thread;  // rank < 0: none (yet, or any more)
    bool said_hello = false;
    int judged = -1;
  };
  struct Registration {
    wire::Key key;
    bool woken = false;
  };
  // What a thread that has asked for something waits for; released when it is answered or ends.
  struct ThreadRecord {
    Link* link = nullptr;
    pid_t tid = 0;
    bool asked = false;  // a request is under way
    wire::Op op = wire::Op::kNone;
    std::uint64_t sequence = 0;
    std::optional<Time> since;  // when the call began; only for the trace
    std::vector<wire::Fd> fds;
    std::vector<std::int16_t> fd_events;
    std::uint64_t when_done = 0, watch = 0;
    // The last poll of memory.
    struct Parked {
      std::vector<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>> watches;  // sorted
      bool timed = false;
      Time since = 0, at = 0;  // of the first and the last of a series of the same
      int doubts = 0;
      std::uint64_t doubted_acts = 0;  // Hosts::acts() at the last doubt
    } parked;
    std::vector<Registration> keys;
    bool in_wait_key = false;
    wire::Key wait_key;
    // A series of equal queries, all answered "not ready".
    struct Series {
      wire::Op op = wire::Op::kNone;
      std::uint64_t object = 0;
      int device = 0;
      int count = 0;
      Time first = 0, last = 0, period = 0;
    } series;
  };
  struct Child {
    std::int32_t rank = -1;
    pid_t pid = 0;
    bool ended = false;
    std::uint64_t end_order = 0;
  };
  struct Image {
    std::uint64_t total = 0;
    wire::Blob bytes;
  };
  struct Process {
    std::int32_t rank = -1, parent = -1;
    std::int32_t host = 0;    // the simulated one
    std::int32_t label = -1;  // the rank that a launcher gave it, for people to read
    std::uint64_t token = 0;
    pid_t pid = 0;
    bool watched = false;          // its end will be told by pid
    std::uint64_t exec_token = 0;  // between Exec and the new image's Hello
    Thread exec_thread;
    std::vector<Child> children;
    std::optional<node::ProcessId> machine;  // made at the first call that needs a device
    bool pinned = false;
    std::map<std::uint64_t, Image> images;
    std::uint64_t image_bytes = 0, queued_bytes = 0;
    std::unordered_set<std::uint64_t> modules;
    std::unordered_map<std::uint64_t, std::uint64_t> kernels;       // to their modules
    std::map<std::pair<int, std::uint64_t>, std::uint64_t> loaded;  // (device, image) -> module
    std::unordered_map<std::uint64_t, int> streams, events;         // to their devices
    std::size_t allocations = 0;
    std::deque<node::HostCall> host_calls;  // whose turn has come
    std::optional<Thread> host_caller;      // the thread that waits for the next
  };
  // (rank, object, address); rank -1: shared.
  using PlaceKey = std::tuple<std::int32_t, std::uint64_t, std::uint64_t>;

  // CPU time of a call that only concerns hosts (a join, a wake-up, a yield): about a system call.
  // Not in the profile, which describes devices; only its being small matters.
  static constexpr Time kHostCall = node::Ns(100);

  // --- sessions.cpp: connections
  void Violation(Link* link, const std::string& why);
  void Drop(Link* link);
  void AcceptHello(Link* link, Session& session, wire::Frame& frame);
  // The thread that a hello stands for in a judged run.
  std::optional<Thread> JoinJudged(const Session& session, const wire::Hello& hello);

  // --- requests.cpp: messages and replies
  template <class M>
  void Accept(Link* link, Session& session, wire::Frame& frame);
  // Where a call was made, by the return addresses on its stack; 0: not known.
  node::SiteId SiteOf(Thread thread, const std::vector<std::uint64_t>& stack);
  void NoteSite(Thread thread, node::GraphId graph, std::uint32_t place,
                const wire::GraphNode& message);
  void Touched(Thread thread, const std::vector<wire::HostTouch>& touches);
  // Notes a request and has it carried out when it is its turn. No header: it is malformed.
  void Ask(Link* link, Session& session, wire::Frame& frame, const wire::RequestHeader* header,
           std::function<void(Thread, Time)> carry_out);
  // With what a request is answered instead of being carried out: `why`, if the judge refuses it,
  // or the error of the device (or of the stream's, unless it is 0) that it would use; device -1:
  // none.
  node::Status Refused(Thread thread, const std::string& why, int device,
                       std::uint64_t stream) const;
  Time CostOf(wire::Op op) const;
  // Answers `thread` and lets it run.
  template <class M>
  void Reply(Thread thread, const typename M::Reply& body = {},
             node::Status status = node::Status::kSuccess, int fd = -1) {
    SendReply(thread, status, wire::Encode(body), fd);
  }
  template <class M>
  void Fail(Thread thread, node::Status status) {
    Reply<M>(thread, {}, status);
  }
  void SendReply(Thread thread, node::Status status, const wire::Blob& body, int fd);
  // Whether somebody else may change pinned memory while a thread of the process looks at it: a
  // device, or another thread.
  bool MayChange(std::int32_t rank) const;
  void Meet(Thread thread);
  void Release(ThreadRecord& record, Thread thread);

  // --- core.cpp: the loop
  bool RunMachine(std::optional<Time> due);
  bool PollDescriptors();
  // `device_users`: only what processes wait for that have used a device; others are launchers,
  // whose input helps nobody who waits for a device.
  Reach Outside(bool device_users) const;
  bool DevicesStuck() const;
  std::optional<std::uint64_t> Asleep(Thread thread) const;
  // Has the loops that count as stuck only because they look so run for a while; false if there is
  // no such loop, or all have done that since anybody acted.
  bool Doubt();
  // A doubted thread that sleeps in a futex now, or is detached, may never ask again: nobody waits
  // for that.
  void DropSilentDoubts();

  // --- processes.cpp: processes and threads as they come and go
  void PlaceImage(Process& process, const wire::Hello& hello);
  void ThreadEnded(Thread thread, Time at);
  void ProcessEnded(std::int32_t rank, Time at);
  void KillRank(std::int32_t rank, Time at);
  void DropMachineProcess(Process& process);
  Process& ProcessOf(Thread thread) { return processes_.at(thread.rank); }
  node::ProcessId MachineOf(Thread thread);
  std::uint64_t NewToken();

  // --- host_calls.cpp: threads, processes and their waits
  void Handle(Thread thread, const wire::Hello& message, Time at);
  void Handle(Thread thread, const wire::NewThread& message, Time at);
  void Handle(Thread thread, const wire::ThreadExit& message, Time at);
  void Handle(Thread thread, const wire::WaitThread& message, Time at);
  void Handle(Thread thread, const wire::NewProcess& message, Time at);
  void Handle(Thread thread, const wire::ProcessStarted& message, Time at);
  void Handle(Thread thread, const wire::Exec& message, Time at);
  void Handle(Thread thread, const wire::WaitProcess& message, Time at);
  void Handle(Thread thread, const wire::WaitFd& message, Time at);
  void Handle(Thread thread, const wire::Sleep& message, Time at);
  void Handle(Thread thread, const wire::Yield& message, Time at);
  void Handle(Thread thread, const wire::BarrierWait& message, Time at);
  void Handle(Thread thread, const wire::BootstrapBarrier& message, Time at);
  void Handle(Thread thread, const wire::WatchKey& message, Time at);
  void Handle(Thread thread, const wire::UnwatchKey& message, Time at);
  void Handle(Thread thread, const wire::WaitKey& message, Time at);
  void Handle(Thread thread, const wire::WakeKey& message, Time at);
  void Handle(Thread thread, const wire::HostPoll& message, Time at);
  template <class M>
  void ArriveAt(std::vector<Thread>& waiters, Thread thread, std::uint32_t count, Time at);
  PlaceKey Place(Thread thread, const wire::Key& key) const;
  void Withdraw(Thread thread, const wire::Key& key);
  void ReplaceImage(Process& process);
  void WakeParent(Process& parent, Time at);
  // `thread` has run, and may have changed what parked polls of its process look at.
  void LookAgain(Thread thread, bool at_once, Time at);

  // --- device_calls.cpp: the device API
  void Handle(Thread thread, const wire::Init& message, Time at);
  void Handle(Thread thread, wire::PutImage& message, Time at);
  void Handle(Thread thread, const wire::DropImage& message, Time at);
  void Handle(Thread thread, const wire::LoadModule& message, Time at);
  void Handle(Thread thread, const wire::UnloadModule& message, Time at);
  void Handle(Thread thread, const wire::GetKernel& message, Time at);
  void Handle(Thread thread, const wire::GetGlobal& message, Time at);
  void Handle(Thread thread, const wire::ListKernels& message, Time at);
  void Handle(Thread thread, const wire::SetMaxDynamicShared& message, Time at);
  void Handle(Thread thread, const wire::SetLimit& message, Time at);
  void Handle(Thread thread, const wire::Occupancy& message, Time at);
  void Handle(Thread thread, const wire::Alloc& message, Time at);
  void Handle(Thread thread, const wire::Free& message, Time at);
  void Handle(Thread thread, const wire::AllocPinned& message, Time at);
  void Handle(Thread thread, const wire::FreePinned& message, Time at);
  void Handle(Thread thread, const wire::Describe& message, Time at);
  void Handle(Thread thread, const wire::IpcExport& message, Time at);
  void Handle(Thread thread, const wire::IpcOpen& message, Time at);
  void Handle(Thread thread, const wire::IpcClose& message, Time at);
  void Handle(Thread thread, const wire::CanAccessPeer& message, Time at);
  void Handle(Thread thread, const wire::EnablePeer& message, Time at);
  void Handle(Thread thread, const wire::DisablePeer& message, Time at);
  void Handle(Thread thread, const wire::MemInfo& message, Time at);
  void Handle(Thread thread, const wire::StickyError& message, Time at);
  void Handle(Thread thread, const wire::ResetDevice& message, Time at);
  // --- work_calls.cpp: streams, events, launches, copies
  void Handle(Thread thread, const wire::CreateStream& message, Time at);
  void Handle(Thread thread, const wire::DestroyStream& message, Time at);
  void Handle(Thread thread, const wire::StreamQuery& message, Time at);
  void Handle(Thread thread, const wire::StreamSync& message, Time at);
  void Handle(Thread thread, const wire::CreateEvent& message, Time at);
  void Handle(Thread thread, const wire::DestroyEvent& message, Time at);
  void Handle(Thread thread, const wire::RecordEvent& message, Time at);
  void Handle(Thread thread, const wire::WaitEvent& message, Time at);
  void Handle(Thread thread, const wire::EventQuery& message, Time at);
  void Handle(Thread thread, const wire::EventSync& message, Time at);
  void Handle(Thread thread, const wire::EventElapsed& message, Time at);
  void Handle(Thread thread, const wire::DeviceSync& message, Time at);
  void Handle(Thread thread, wire::Launch& message, Time at);
  void Handle(Thread thread, const wire::Copy& message, Time at);
  void Handle(Thread thread, wire::CopyIn& message, Time at);
  void Handle(Thread thread, const wire::CopyOut& message, Time at);
  void Handle(Thread thread, const wire::Memset& message, Time at);
  // --- memory_calls.cpp: stream-ordered and host memory
  void Handle(Thread thread, const wire::DefaultPool& message, Time at);
  void Handle(Thread thread, const wire::CreatePool& message, Time at);
  void Handle(Thread thread, const wire::DestroyPool& message, Time at);
  void Handle(Thread thread, const wire::GetPoolAttribute& message, Time at);
  void Handle(Thread thread, const wire::SetPoolAttribute& message, Time at);
  void Handle(Thread thread, const wire::TrimPool& message, Time at);
  void Handle(Thread thread, const wire::SetPoolAccess& message, Time at);
  void Handle(Thread thread, const wire::GetPoolAccess& message, Time at);
  void Handle(Thread thread, const wire::AllocAsync& message, Time at);
  void Handle(Thread thread, const wire::FreeAsync& message, Time at);
  void Handle(Thread thread, const wire::RegisterHost& message, Time at);
  void Handle(Thread thread, const wire::Prefetch& message, Time at);

  // --- share_calls.cpp: memory by handles, multicast objects, sharing between processes
  void Handle(Thread thread, const wire::CreateMemory& message, Time at);
  void Handle(Thread thread, const wire::ReleaseMemory& message, Time at);
  void Handle(Thread thread, const wire::RetainMemory& message, Time at);
  void Handle(Thread thread, const wire::MemoryInfo& message, Time at);
  void Handle(Thread thread, const wire::ExportMemory& message, Time at);
  void Handle(Thread thread, const wire::ImportMemory& message, Time at);
  void Handle(Thread thread, const wire::ReserveAddress& message, Time at);
  void Handle(Thread thread, const wire::FreeAddress& message, Time at);
  void Handle(Thread thread, const wire::MapMemory& message, Time at);
  void Handle(Thread thread, const wire::UnmapMemory& message, Time at);
  void Handle(Thread thread, const wire::SetMemoryAccess& message, Time at);
  void Handle(Thread thread, const wire::GetMemoryAccess& message, Time at);
  void Handle(Thread thread, const wire::CreateMulticast& message, Time at);
  void Handle(Thread thread, const wire::AddMulticastDevice& message, Time at);
  void Handle(Thread thread, const wire::BindMulticast& message, Time at);
  void Handle(Thread thread, const wire::UnbindMulticast& message, Time at);
  void Handle(Thread thread, const wire::ExportPool& message, Time at);
  void Handle(Thread thread, const wire::ImportPool& message, Time at);
  void Handle(Thread thread, const wire::ExportPointer& message, Time at);
  void Handle(Thread thread, const wire::ImportPointer& message, Time at);
  // Answers with what `attempt` says, when it no longer says that a team is not complete.
  template <class M>
  void WhenTeamComplete(Thread thread, std::function<node::Status()> attempt);

  // --- stream_calls.cpp: host functions, values in memory
  void Handle(Thread thread, const wire::CallHost& message, Time at);
  void Handle(Thread thread, const wire::NextHostCall& message, Time at);
  void Handle(Thread thread, const wire::StreamValues& message, Time at);
  void Handle(Thread thread, const wire::SetVisible& message, Time at);
  void Handle(Thread thread, const wire::ExportEvent& message, Time at);
  void Handle(Thread thread, const wire::OpenEvent& message, Time at);
  void HostCallDue(const node::HostCall& call, Time at);
  void AnswerHostCaller(Thread thread);
  // --- graph_calls.cpp
  void Handle(Thread thread, wire::PutGraph& message, Time at);
  void Handle(Thread thread, wire::UpdateGraph& message, Time at);
  void Handle(Thread thread, const wire::DropGraph& message, Time at);
  void Handle(Thread thread, const wire::LaunchGraph& message, Time at);
  // --- judged.cpp, by way of Judged
  void Handle(Thread thread, const wire::JudgeNext& message, Time at);
  void Handle(Thread thread, const wire::JudgeOpen& message, Time at);
  void Handle(Thread thread, const wire::JudgeClose& message, Time at);
  void Handle(Thread thread, const wire::JudgeGather& message, Time at);
  void Handle(Thread thread, const wire::JudgeHostStep& message, Time at);
  // What a message asks of the machine. False: it is too large, or names what the process has not.
  bool Translate(Thread thread, wire::Launch& message, node::LaunchRequest* launch);
  bool Translate(Thread thread, wire::GraphNode& message, node::GraphNode* node);

  struct Stream {
    node::StreamId id = 0;
    int device = 0;
  };
  bool DeviceOk(Thread thread, int device);
  // nullopt: no such stream or device.
  std::optional<Stream> Find(Thread thread, const wire::StreamRef& ref);
  // Answers when all are done, with the error of the device's context.
  template <class M>
  void ReplyWhenDone(Thread thread, std::vector<node::OpId> ops, int device, Time at,
                     std::shared_ptr<typename M::Reply> body = nullptr,
                     std::shared_ptr<node::CopyRequest> copy = nullptr);
  template <class M>
  void AnswerQuery(Thread thread, std::vector<node::OpId> ops, std::uint64_t object, int device,
                   Time at);
  void CountQueued(Thread thread, node::OpId op, std::uint64_t bytes);

  CoreOptions options_;
  HostSites sites_;  // of host code; the machine asks for them
  std::unique_ptr<node::Machine> machine_;
  node::Checking* checking_;  // the machine, if it checks
  std::vector<node::Finding> findings_;
  node::Hosts hosts_;
  std::unordered_map<Link*, Session> sessions_;
  std::map<Thread, ThreadRecord> threads_;
  std::map<std::int32_t, Process> processes_;
  std::unordered_map<std::uint64_t, std::int32_t> tokens_;  // to ranks
  std::multimap<Thread, Thread> joins_;                     // ended thread -> who waits for it
  std::map<PlaceKey, std::vector<Thread>> barriers_, registered_;
  std::map<std::string, std::vector<Thread>> named_barriers_;
  struct ProcessWait {
    Thread thread;
    std::int32_t pid = -1;
  };
  std::vector<ProcessWait> process_waits_;
  // Threads that wait for a multicast object's team; true: it no longer has to.
  std::map<Thread, std::function<bool(Time)>> team_waits_;
  std::set<Thread> descriptor_waits_;
  std::set<Thread> parked_;    // threads in a HostPoll
  std::set<Thread> doubting_;  // those that Doubt() has woken, until their next request is handled
  bool ran_natively_ = false;  // since descriptors were last looked at
  bool deadlock_ = false;
  bool quiet_ = false;  // devices are stuck, and nobody inside has acted for long
  std::optional<std::int64_t> stalled_since_;  // wall ms
  std::uint64_t stalled_acts_ = 0;             // Hosts::acts() then
  std::uint64_t ends_ = 0;
  std::vector<node::Fault> faults_;
  std::unordered_map<node::ProcessId, std::int32_t> machine_ranks_;
  std::int32_t processes_seen_ = 0;
  std::unique_ptr<Judged> judged_;
};

}  // namespace allranks::server
