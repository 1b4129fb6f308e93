// Handlers of what concerns hosts only (wire/host_messages.h): threads, processes, and the waits
// between them by joins, barriers, keys and time. Waits for what no message tells are in
// poll_calls.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "node/hosts.h"
#include "node/time.h"
#include "server/desk.h"
#include "server/records.h"
#include "wire/messages.h"

namespace allranks::server {

class HostCalls {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  explicit HostCalls(Desk& desk) : desk_(desk), hosts_(desk.hosts()), roster_(desk.roster()) {}

  void Handle(Thread thread, const wire::Hello& message, Time at);
  void Handle(Thread thread, const wire::NewThread& message, Time at);
  void Handle(Thread thread, const wire::ThreadExit& message, Time at);
  void Handle(Thread thread, const wire::WaitThread& message, Time at);
  void Handle(Thread thread, const wire::NewProcess& message, Time at);
  void Handle(Thread thread, const wire::ProcessStarted& message, Time at);
  void Handle(Thread thread, const wire::Exec& message, Time at);
  void Handle(Thread thread, const wire::WaitProcess& message, Time at);
  void Handle(Thread thread, const wire::Sleep& message, Time at);
  void Handle(Thread thread, const wire::Yield& message, Time at);
  void Handle(Thread thread, const wire::BarrierWait& message, Time at);
  void Handle(Thread thread, const wire::BootstrapBarrier& message, Time at);
  void Handle(Thread thread, const wire::WatchKey& message, Time at);
  void Handle(Thread thread, const wire::UnwatchKey& message, Time at);
  void Handle(Thread thread, const wire::WaitKey& message, Time at);
  void Handle(Thread thread, const wire::WakeKey& message, Time at);
  void Handle(Thread thread, const wire::Ranges& message, Time at);

  // --- for the Core
  // The thread no longer watches any key. While its record is there.
  void WithdrawKeys(Thread thread);
  // It waits for nobody, and nobody for it. After its record is gone.
  void ThreadEnded(Thread thread, Time at);
  // Its children have no parent, and its parent may be told. After its record is gone.
  void ProcessEnded(const Process& process, Time at);

 private:
  // (rank, object, address); rank -1: shared.
  using PlaceKey = std::tuple<std::int32_t, std::uint64_t, std::uint64_t>;
  struct ProcessWait {
    Thread thread;
    std::int32_t pid = -1;
  };

  template <class M>
  void ArriveAt(std::vector<Thread>& waiters, Thread thread, std::uint32_t count, Time at);
  static PlaceKey Place(Thread thread, const wire::Key& key);
  // Whether somebody has woken the thread by this key since it watches it.
  bool IsWoken(Thread thread, const wire::Key& key) const;
  void Withdraw(Thread thread, const wire::Key& key);
  void WakeParent(Process& parent, Time at);

  Desk& desk_;
  node::Hosts& hosts_;
  Roster& roster_;
  std::multimap<Thread, Thread> joins_;  // ended thread -> who waits for it
  std::map<PlaceKey, std::vector<Thread>> barriers_, registered_;
  std::map<std::string, std::vector<Thread>> named_barriers_;
  std::vector<ProcessWait> process_waits_;
  std::uint64_t ends_ = 0;  // of processes that had a parent
};

}  // namespace allranks::server
