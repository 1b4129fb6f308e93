// Starts bubblewrap, or a trusted program itself: between fork and exec come the control group, the
// output, the descriptors, root's mounts and the change of user.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "judge/bubblewrap.h"

namespace allranks::judge {

// A limit of the process; one above its hard limit is that limit.
struct Bound {
  __rlimit_resource_t what;
  rlim_t most;
};

struct SpawnOrder {
  std::string program;  // path; empty: bubblewrap
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string folder;  // it starts there; empty: where the judge is
  std::vector<Bound> bounds;
  bool fixed_addresses = false;  // no randomisation, where that is allowed
  std::vector<int> doors;        // files of control groups to join
  int out = -1, err = -1;
  std::vector<int> inherited;  // all others are closed; standard input is /dev/null
  int network = -1;            // pidfd of a process whose network it joins; -1: none
  bool drop_user = false;      // become nobody
  std::string stage;
  std::vector<Staged> staged;
};

// Where bwrap is; empty: nowhere.
const std::string& FindBubblewrap();

// The new process. It dies with the calling thread.
Result<pid_t> Spawn(const SpawnOrder& order);

}  // namespace allranks::judge
