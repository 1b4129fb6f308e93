// The node as a process: one thread, an epoll loop over the ranks' connections, and the Core that
// they talk to. `allranks exec` starts it (as the hidden command `allranks node`), hands it the
// socket that ranks connect to and a control connection, and asks it for its report at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node/machine.h"

namespace allranks::server {

struct NodeOptions {
  int listen_fd = -1;  // a listening Unix stream socket; none in a judged run
  int control_fd =
      -1;  // the supervisor's connection: Finish in, Deadlock out; its end is the node's
  std::string folder;   // of the socket; removed if the supervisor ends before it could
  std::string profile;  // path
  node::MachineOptions machine;
  std::vector<std::string> faults;  // node::ParseFault, put into `machine`
  std::int64_t patience_ms = 3'000;
  int trace_fd = -1;       // where to write the trace; -1: none is wanted
  int ranks_per_host = 0;  // 0: one for each device
  // A judged run: the listening socket of each rank, and the memory files for inputs and snapshots.
  std::vector<int> judge_listen_fds;
  int judge_inputs_fd = -1, judge_outputs_fd = -1;
  std::vector<std::string> judge_libraries;  // files whose images ranks may load
  std::string secret;                        // as MachineOptions has it
};

// Returns the exit code. Failures to start are printed to stderr.
int RunNode(const NodeOptions& options);

}  // namespace allranks::server
