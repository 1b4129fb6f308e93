// Handlers of memory by handles, multicast objects and sharing between processes
// (wire/share_messages.h).
#pragma once

#include <functional>
#include <map>

#include "node/hosts.h"
#include "node/machine.h"
#include "node/status.h"
#include "node/time.h"
#include "server/desk.h"
#include "wire/messages.h"

namespace allranks::server {

class ShareCalls {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  explicit ShareCalls(Desk& desk) : desk_(desk), hosts_(desk.hosts()), machine_(desk.machine()) {}

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
  void Handle(Thread thread, const wire::ExportRange& message, Time at);

  // --- for the Core
  void ThreadEnded(Thread thread) { team_waits_.erase(thread); }

 private:
  // Answers with what `attempt` says, when it no longer says that a team is not complete.
  using Answer = std::function<void(node::Status)>;
  void WhenTeamComplete(Thread thread, std::function<node::Status()> attempt, Answer answer);
  // Those who wait for a team try again, in the order of their ranks, whoever came first.
  void TryTeams(Time at);

  Desk& desk_;
  node::Hosts& hosts_;
  node::Machine& machine_;
  // Threads that wait for a multicast object's team; true: it no longer has to.
  std::map<Thread, std::function<bool(Time)>> team_waits_;
};

}  // namespace allranks::server
