// What a process and its descendants use, read from /proc: for machines without control groups.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>

namespace allranks::judge {

struct TreeUse {
  double cpu_seconds = 0;  // of all that were ever seen: never less than before
  std::uint64_t memory = 0, peak = 0;
  std::uint32_t processes = 0;  // and threads

  void Add(const TreeUse& now) {
    cpu_seconds = std::max(cpu_seconds, now.cpu_seconds);
    memory = now.memory;
    peak = std::max(peak, now.memory);
    processes = now.processes;
  }
};

TreeUse LookAtTree(pid_t root);

}  // namespace allranks::judge
