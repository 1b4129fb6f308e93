// Handlers of waits for what changes without a message (wire/host_messages.h): descriptors, and
// pinned memory that a loop looks at. Both are looked at again after threads have run natively; the
// Core's loop says when.
#pragma once

#include <poll.h>

#include <set>
#include <vector>

#include "node/hosts.h"
#include "node/time.h"
#include "server/desk.h"
#include "server/outside.h"
#include "wire/messages.h"

namespace allranks::server {

class PollCalls {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  explicit PollCalls(Desk& desk) : desk_(desk), hosts_(desk.hosts()), waits_(desk.polls()) {}

  void Handle(Thread thread, const wire::WaitFd& message, Time at);
  void Handle(Thread thread, const wire::HostPoll& message, Time at);

  // --- for the Core
  // Wakes threads whose descriptors have become ready; true if there is one.
  bool PollDescriptors();
  // Who could make descriptors ready that threads wait for. `device_users`: only what processes
  // wait for that have used a device; others are launchers, whose input helps nobody who waits for
  // a device.
  Reach Outside(bool device_users) const;
  // `thread` has run, and may have changed what parked polls of its process look at.
  void LookAgain(Thread thread, bool at_once, Time at);
  // Has the loops that count as stuck only because they look so run for a while; false if there is
  // no such loop, or all have done that since anybody acted.
  bool Doubt();
  // Somebody whom Doubt() has woken has not asked since.
  bool doubting() const { return !doubting_.empty(); }
  // The thread has asked, or has ended.
  void EndDoubt(Thread thread) { doubting_.erase(thread); }
  // A doubted thread that sleeps in a futex now, or is detached, may never ask again: nobody waits
  // for that.
  void DropSilentDoubts();

 private:
  Desk& desk_;
  node::Hosts& hosts_;
  Polls& waits_;
  std::vector<pollfd> polls_;  // of PollDescriptors, kept for its room
  std::set<Thread> doubting_;  // those that Doubt() has woken, until their next request is handled
};

}  // namespace allranks::server
