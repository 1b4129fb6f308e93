// The launcher behind `allranks exec --ranks`: a process of the run that starts the ranks.
#pragma once

#include <string>
#include <vector>

namespace allranks::cli {

struct RankOptions {
  int ranks = 1;
  int per_host = 1;  // ranks on each simulated host, the first ones on the first
  std::vector<std::string> command;
};

// Runs the command once for each rank. Returns the exit code of the first that failed, or 0.
int StartRanks(const RankOptions& options);

// Puts defaults for Open MPI into this process's environment, which the program will inherit:
// transports that end on this machine, waits that yield, as many ranks as one likes, and on several
// simulated hosts a way to start daemons there (`mpirun --host node0:4,node1:4`).
void SetLauncherDefaults(bool several_hosts);

// `allranks rsh HOST COMMAND...`, what Open MPI uses as its remote shell: runs the command here, on
// the simulated host of that name.
int RunOnHost(int argc, char** argv);

}  // namespace allranks::cli
