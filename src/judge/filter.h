// System-call filters (seccomp), as the kernel takes them. Two are laid over each other: Common on
// everything in a sandbox, Locked on ranks and nodes, whose needs are few and known.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace allranks::judge {

using Filter = std::vector<std::uint64_t>;  // sock_filter

// Allows all but what reaches other processes, the kernel's rarer parts or other machines. With
// `network` other families of sockets are left to the locked filter.
Result<Filter> CommonFilter(bool network);

struct Locked {
  bool listens = false;  // to sockets
  bool forks = false;
  bool network = false;  // TCP within the sandbox's network namespace, which has only loopback
};
// Allows only what a program with threads and a socket needs. execve is sent to a listener.
Result<Filter> LockedFilter(const Locked& what);

}  // namespace allranks::judge
