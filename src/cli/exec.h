// `allranks exec`: runs a program on a virtual node and cleans up behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/finding_list.h"

namespace allranks::cli {

struct ExecOptions {
  std::string profile = "h100x8";  // name or path
  int devices = 0;
  int ranks = 0;              // copies of the program; 0: one, which is told of no rank
  int ranks_per_host = 0;     // 0: one for each device
  bool no_redirect = false;   // calls of a static CUDA runtime stay its own
  bool allow_faults = false;  // kernels that fail do not change the exit code
  bool stats = false;
  std::string stats_json;
  std::vector<std::string> faults;  // node::ParseFault
  std::string trace;                // a file
  bool check = false;
  std::uint64_t schedule = 0;           // node::Checking::SetSchedule
  int schedules = 0;                    // further ones, in runs of their own
  int jobs = 0;                         // of these at a time; 0: as many as there are cores
  std::string findings;                 // a file
  std::optional<FindingFormat> format;  // of that file; by its name
  FindingOptions listing;
  double patience_s = 3;
  double timeout_s = 0;  // of wall time; 0: none
  std::vector<std::string> command;
};

// Exit codes of its own; all others are the program's.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInternal = 70;  // the node failed
inline constexpr int kExitDeadlock = 86;
inline constexpr int kExitFindings = 87;   // the program ended well, but the checker has findings
inline constexpr int kExitNotLoaded = 88;  // the program ended well without some of its kernels
inline constexpr int kExitFault = 89;      // the program ended well although kernels of it failed
inline constexpr int kExitTimeout = 124;
inline constexpr int kExitCannotRun = 126;
inline constexpr int kExitNotFound = 127;

// How one run ended.
struct RunOutcome {
  std::optional<int> refused;  // the exit code of a run that could not be made
  bool deadlock = false, node_lost = false;
  bool timeout = false;
  bool stopped = false;  // a signal asked for its end
  std::string deadlock_text;
  int code = 0;            // the program's own, 128 + N if signal N killed it
  std::string stats_json;  // the node's report; empty: it has none
  std::vector<node::Finding> findings;
};
// The kernels and copies of the run that failed, if the program ended well nonetheless. One that a
// finding explains which counts in `list` is left out.
std::vector<std::string> IgnoredFaults(const ExecOptions& options, const RunOutcome& run,
                                       const FindingList& list);
// One run. `quiet`: where it stands, by a deadlock or a timeout, is not printed.
RunOutcome RunOnce(const ExecOptions& options, bool quiet);

// Returns the exit code for main().
int Exec(const ExecOptions& options);

std::unique_ptr<Command> MakeExecCommand(CLI::App* app);

}  // namespace allranks::cli
