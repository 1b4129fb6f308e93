// Whether anybody but the node's own ranks could ever write to a descriptor that ranks wait for:
// the difference between a deadlock and a program that waits for its user.
#pragma once

#include <sys/types.h>

#include <span>

namespace allranks::server {

enum class Reach {
  kNobody,    // only this process and `ours` hold them
  kUnknown,   // sockets: their other ends cannot be named
  kSomebody,  // another process does, or the kernel itself (terminals, timers)
};

// A descriptor of this process, and the process that it came from.
struct Held {
  int fd = -1;
  pid_t from = 0;
};

// Who but this process and `ours` could make one of `fds` ready, as far as /proc tells. An epoll
// set counts for what is in it.
Reach WhoElseHolds(std::span<const Held> fds, std::span<const pid_t> ours);

// Whether a thread is asleep until another thread of its process wakes it: in a private futex, with
// no timeout. False if /proc does not tell. While no other thread of the process runs it stays so.
bool WaitsForThread(pid_t pid, pid_t tid);

}  // namespace allranks::server
