// Keys: how a lock in memory is named to the node, and the protocol of waiting at one. Used by
// locks.cpp, which has the reasons.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/host/link.h"

namespace allranks::shim {

// The key of a lock at `address`; `shared`: between processes.
wire::Key KeyOf(const void* address, bool shared);

// Registered waiters of this process, by hash of the key.
std::atomic<std::uint32_t>& Waiters(const wire::Key& key);

// Somebody may have to be woken: tells the node if so. How many were.
std::uint32_t Wake(const void* address, bool shared, std::uint32_t count);

// A registered waiter.
class Watch {
 public:
  Watch(Thread* self, const wire::Key& key) : self_(self), key_(key) {
    Waiters(key).fetch_add(1);
    wire::WatchKey watch;
    watch.key = key;
    linked_ = Call(self, watch) == 0;
  }
  ~Watch() { Waiters(key_).fetch_sub(1); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  bool linked() const { return linked_; }

  // True if woken, false on timeout.
  bool Wait(std::int64_t timeout_ps) {
    wire::WaitKey wait;
    wait.key = key_;
    wait.timeout_ps = timeout_ps;
    wire::WaitKeyReply reply;
    linked_ = Call(self_, wait, &reply) == 0;
    return reply.woken;
  }

  // Not waiting after all. A wake-up that was meant for a waiter goes on to the next.
  void Cancel() {
    wire::UnwatchKey cancel;
    cancel.key = key_;
    wire::WaitKeyReply reply;
    if (Call(self_, cancel, &reply) == 0 && reply.woken) {
      wire::WakeKey wake;
      wake.key = key_;
      Call(self_, wake);
    }
  }

 private:
  Thread* self_;
  wire::Key key_;
  bool linked_;
};

}  // namespace allranks::shim
