// The node's front: requests of host threads in, replies out, and virtual time in between. It is
// the server without its sockets, so that tests and the fuzzer can drive it with frames.
//
// Theory of operation. A frame is decoded as soon as it has come (what cannot be decoded ends its
// process, see Violation), but is handled only when node::Hosts says that its virtual time has
// come. Run() is the loop that lets virtual time pass: as long as no thread runs, it takes the
// earliest item of Hosts, runs the Machine up to its time, and has it handled. Handlers stand in
// groups (Calls) and work with a Desk. A handler answers at once, which lets the thread run and so
// ends Run(), or it leaves the thread waiting: for operations, for pinned memory, for other threads
// (joins, keys, barriers), for a time, or for descriptors.
//
//   Link ──▶ Core (sessions.cpp, requests.cpp) ──▶ Calls ──▶ Desk ──▶ node::Machine, node::Hosts
//                                                    └──── Desk::Reply ────▶ Link
//
// Descriptors are the one thing that changes without the node: they are looked at after any thread
// has run natively and before time passes. Then nobody else can have written to them, unless
// somebody outside did.
//
// Everything a process owns here dies with it (ProcessEnded).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "node/checking.h"
#include "node/hosts.h"
#include "node/machine.h"
#include "server/desk.h"
#include "server/link.h"
#include "server/options.h"
#include "server/ranges.h"
#include "server/records.h"
#include "server/report.h"
#include "server/roster.h"
#include "server/run_control.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace allranks::server {

class Calls;   // calls.h
class Judged;  // judged.h

class Core final : private RunControl {
 public:
  enum class Standing {
    kHeld,         // threads run: wait for their messages
    kIdle,         // nobody is there, or only something outside can help
    kInterrupted,  // the machine was paused: look at the sockets, then go on
    kDeadlock,
  };

  Core(std::unique_ptr<node::Machine> machine, CoreOptions options);
  ~Core() override;

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
  bool PollOutside();
  bool WaitsForDescriptors() const { return !desk_.polls().descriptors.empty(); }

  node::Machine& machine() { return machine_; }
  Judged* judged() { return judged_.get(); }  // null: this is no judged run
  const node::Hosts& hosts() const { return hosts_; }
  std::size_t process_count() const { return roster_.processes().size(); }

  RunReport Report() override;
  std::vector<node::Finding> TakeFindings() override;
  // Where everything stands, for a person.
  std::string Where();
  // Closes the trace's calls that have not returned.
  void FinishTrace();

 private:
  using Thread = node::HostThread;
  using Time = node::Time;

  // --- sessions.cpp: connections
  void Violation(Link* link, const std::string& why);
  void Drop(Link* link);
  void CloseLinks() override;
  void AcceptHello(Link* link, Session& session, wire::Frame& frame);
  // The thread that a hello stands for. nullopt: none, and *why says why.
  std::optional<Thread> ThreadOf(const Session& session, const wire::Hello& hello,
                                 std::string* why);
  std::optional<Thread> JudgedThreadOf(const Session& session, const wire::Hello& hello);

  // --- requests.cpp: messages
  template <class M>
  void Accept(Link* link, Session& session, wire::Frame& frame);
  // Notes a request and has it carried out when it is its turn. No header: it is malformed.
  void Ask(Link* link, Session& session, wire::Frame& frame, const wire::RequestHeader* header,
           std::function<void(Thread, Time)> carry_out);
  // With what a request is answered instead of being carried out: `why`, if the judge refuses it,
  // or the error of the device (or of the stream's, unless it is 0) that it would use; device -1:
  // none.
  node::Status Refused(Thread thread, const std::string& why, int device,
                       std::uint64_t stream) const;
  void Touched(Thread thread, const std::vector<wire::HostTouch>& touches);
  // For the trace: a call begins.
  void BeginTraced(Thread thread, Time since, const std::vector<std::uint64_t>& stack);
  void NoteRanges(Thread thread, const std::vector<wire::RangeEvent>& events, Time now);

  // --- core.cpp: the loop
  bool RunMachine(std::optional<Time> due);
  void TakeFaults();
  bool DevicesStuck() const;
  bool LooksAgain();
  void TellIdle();
  std::vector<node::Hosts::ThreadInfo> HostThreads() const;
  void AddStanding(RunReport* report) const;
  std::optional<std::uint64_t> Asleep(Thread thread) const;
  void DeclareDeadlock() override { deadlock_ = true; }
  const std::vector<node::Fault>& faults() const override { return faults_; }

  // --- processes.cpp: processes and threads as they come and go
  void PlaceImage(Process& process, const wire::Hello& hello);
  // execve has taken everything but the process itself.
  void ReplaceImage(Process& process);
  void ThreadEnded(Thread thread, Time at);
  void ProcessEnded(std::int32_t rank, Time at);
  void KillRank(std::int32_t rank, Time at);
  void DropMachineProcess(Process& process);
  // The thread's connection belongs to nobody until it closes.
  void LeaveSession(const ThreadRecord& record);

  CoreOptions options_;
  Desk desk_;
  node::Hosts& hosts_;
  node::Machine& machine_;
  Roster& roster_;
  std::unique_ptr<Calls> calls_;
  std::unique_ptr<Judged> judged_;
  std::unordered_map<Link*, Session> sessions_;
  Ranges ranges_;
  std::vector<node::Finding> findings_;
  std::vector<node::Fault> faults_;
  bool deadlock_ = false;
  bool quiet_ = false;  // devices are stuck or idle, and nobody inside has acted for long
  std::uint64_t handled_ = 0, ticked_ = 0;     // items of hosts_, and how many at the last Tick()
  std::optional<std::int64_t> stalled_since_;  // wall ms
  std::uint64_t stalled_acts_ = 0;             // Hosts::acts() then
  bool idle_told_ = false;
};

}  // namespace allranks::server
