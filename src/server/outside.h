// Whether anybody but the node's own ranks could ever write to a descriptor that ranks wait for:
// the difference between a deadlock and a program that waits for its user.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
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

// For a thread that is asleep until another thread of its process wakes it (in a private futex,
// with no timeout): its context switches so far, which change if it wakes and sleeps again. nullopt
// if it is not, or /proc does not tell. While no other thread of the process runs it stays asleep.
std::optional<std::uint64_t> WaitsForThread(pid_t pid, pid_t tid);

}  // namespace allranks::server
