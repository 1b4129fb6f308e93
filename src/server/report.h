// What a run has to say for itself at its end: statistics, and the deadlock if it ended in one.
// Filled by Core, turned into JSON for files and other programs, and into text for a person.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "node/checking.h"
#include "node/finding.h"
#include "node/hosts.h"
#include "node/machine.h"
#include "server/ranges.h"

namespace allranks::server {

struct RunReport {
  std::string profile;
  node::Time virtual_time = 0;
  bool deterministic = true;
  std::vector<std::string> reasons;  // why not
  int processes = 0;
  const node::Stats* stats = nullptr;
  std::vector<node::Fault> faults;
  std::vector<RangeTotal> ranges;           // of the program, by NVTX
  std::vector<std::string> refused_images;  // kernels in them did not run: why
  bool checked = false;                     // there is a checker
  node::PlaceCounts places{};
  std::vector<node::Finding> findings;
  std::map<node::ProcessId, int> ranks;
  bool deadlock = false;
  bool livelock = false;  // a deadlock in which kernels still run, in circles
  std::vector<node::Waiter> waiters;
  std::vector<node::QueuedWork> queued;
  std::vector<node::Hosts::ThreadInfo> hosts;
};

// `void f<int>(float*)` for `_Z1f...`; other names as they are.
std::string Demangle(const std::string& name);

std::string ToJson(const RunReport& report);
// Only the member "deadlock" of the above.
std::string DeadlockJson(const RunReport& report);
std::string DeadlockText(const RunReport& report);
// The same of a run that goes on.
std::string WhereText(const RunReport& report);
// A line for each. `several`: of several processes.
std::string HostsText(const std::vector<node::Hosts::ThreadInfo>& threads, bool several);

}  // namespace allranks::server
