// What every handler of a message works with: the machine, the hosts' clock, the records of who
// asks, and the ways to answer.
//
// The Core owns the desk and the groups of handlers (*_calls.h). It decodes a message, waits for
// its turn and calls its handler. The handler looks up its caller here, asks the machine, and
// either answers (Reply, Fail), which lets the thread run, or leaves the thread waiting: WhenDone
// and ReplyWhenDone wait for operations, hosts().Wait and WakeAt for anything else.
//
// A thread may be gone when a callback comes. Callbacks therefore go by HostThread, never by
// pointer, and an answer to a thread that is gone does nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "node/checking.h"
#include "node/hardware/profile.h"
#include "node/hosts.h"
#include "node/machine.h"
#include "server/host_sites.h"
#include "server/judged_rules.h"
#include "server/options.h"
#include "server/records.h"
#include "server/roster.h"
#include "wire/messages.h"

namespace allranks::server {

// CPU time of a call that only concerns hosts (a join, a wake-up, a yield): about a system call.
// Not in the profile, which describes devices; only its being small matters.
inline constexpr node::Time kHostCall = node::Ns(100);

class Desk {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;
  struct Stream {
    node::StreamId id = 0;
    int device = 0;
  };

  // `options` outlives the desk.
  Desk(std::unique_ptr<node::Machine> machine, const CoreOptions& options,
       node::Hosts::Events events);

  const CoreOptions& options() const { return options_; }
  const CoreLimits& limits() const { return options_.limits; }
  node::Machine& machine() { return *machine_; }
  const node::Machine& machine() const { return *machine_; }
  node::Hosts& hosts() { return hosts_; }
  const node::Hosts& hosts() const { return hosts_; }
  node::Checking* checking() const { return checking_; }  // null: nothing is checked
  // Why images of programs could not be loaded, each reason once.
  const std::vector<std::string>& refused_images() const { return refused_images_; }
  void RefusedImage(const std::string& why);
  HostSites& sites() { return sites_; }
  Roster& roster() { return roster_; }
  const Roster& roster() const { return roster_; }
  Polls& polls() { return polls_; }
  const Polls& polls() const { return polls_; }
  JudgedRules* judged() const { return judged_; }  // null: this is no judged run
  // A judged run whose host code, if there is any, says itself what it does.
  bool Instrumented() const { return judged_ != nullptr && !judged_->library(); }
  void SetJudged(JudgedRules* judged) { judged_ = judged; }

  // --- who asks
  Process& ProcessOf(Thread thread) { return roster_.Of(thread.rank); }
  ThreadRecord& RecordOf(Thread thread) { return roster_.Of(thread); }
  // The caller's process of the machine; made when it is first asked for.
  node::ProcessId MachineOf(Thread thread);
  // A process that is announced, with its first thread.
  Process& AddProcess();
  node::ProcessId AddToMachine(Process& process);

  // --- what it names
  // Both also note that the caller acts.
  bool DeviceOk(Thread thread, int device);
  // nullopt: no such stream or device.
  std::optional<Stream> FindStream(Thread thread, const wire::StreamRef& ref);
  // The error of the caller's context on that device.
  node::Status ErrorOf(Thread thread, int device);
  // Where a call was made, by the return addresses on its stack; 0: not known.
  node::SiteId SiteOf(Thread thread, const std::vector<std::uint64_t>& stack);

  // The call that is being carried out.
  node::SiteId caller() const { return caller_; }
  void SetCaller(node::SiteId site);

  // --- answers
  // Answers `thread` and lets it run.
  template <class M>
  void Reply(Thread thread, const typename M::Reply& body = {},
             node::Status status = node::Status::kSuccess, int fd = -1) {
    Send(thread, status, wire::Encode(body), fd);
  }
  template <class M>
  void Fail(Thread thread, node::Status status) {
    Reply<M>(thread, {}, status);
  }
  // Calls `action` at once if all are done. Else the thread waits in `what`, and `action` is called
  // `later` after the last is done.
  void WhenDone(Thread thread, std::vector<node::OpId> ops, std::string what, Time later, Time at,
                node::Hosts::Action action);
  // Answers when all are done, with the error of the device's context. `copy`: whose bytes are the
  // answer.
  template <class M>
  void ReplyWhenDone(Thread thread, std::vector<node::OpId> ops, int device, Time at,
                     std::shared_ptr<node::CopyRequest> copy = nullptr) {
    WhenDone(thread, std::move(ops), wire::OpName(wire::kOpOf<M>), machine_->profile().launch.sync,
             at, [this, thread, device, copy = std::move(copy)](Time) {
               typename M::Reply reply;
               if constexpr (std::is_same_v<M, wire::CopyOut>) reply.bytes = std::move(copy->bytes);
               Reply<M>(thread, reply, ErrorOf(thread, device));
             });
  }
  // Tells the trace of the thread's call, if it was in one.
  void EndTraced(Thread thread, ThreadRecord& record);
  // Whatever the thread waited for no longer needs to know of it.
  void Release(Thread thread);

  // What one process's host code has waited for may be known to another's from here on.
  void Meet(Thread thread);

 private:
  void Send(Thread thread, node::Status status, const wire::Blob& body, int fd);
  // Whether somebody else may change pinned memory while a thread of the process looks at it: a
  // device, or another thread.
  bool MayChange(std::int32_t rank) const;
  // What the process has of the machine; nullopt: nothing, or there is no such process.
  std::optional<node::ProcessId> FindMachine(std::int32_t rank) const;

  const CoreOptions& options_;
  HostSites sites_;  // of host code; the machine asks for them
  std::unique_ptr<node::Machine> machine_;
  std::vector<std::string> refused_images_;
  node::Checking* checking_;  // the machine, if it checks
  node::Hosts hosts_;
  Roster roster_;
  Polls polls_;
  node::SiteId caller_ = 0;
  JudgedRules* judged_ = nullptr;
};

}  // namespace allranks::server
