// Starts bubblewrap: between fork and exec come the control group, the output, the descriptors,
// root's mounts and the change of user.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "judge/bubblewrap.h"

namespace allranks::judge {

struct SpawnOrder {
  std::vector<std::string> arguments;
  std::vector<int> doors;  // files of control groups to join
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
