// The options of `allranks exec`, and its help. exec.cpp has what they do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/exec.h"
#include "cli/paths.h"
#include "cli/say.h"
#include "cli/usage.h"
#include "cli/values.h"
#include "node/findings.h"

namespace allranks::cli {
namespace {

constexpr const char* kHelp =
    R"(Runs PROGRAM on a virtual node: its CUDA calls go to simulated devices instead of real ones.

PROGRAM and its libraries must contain PTX, as they do by nvcc's defaults. Where they carry the static
CUDA runtime, its functions are redirected to the node's runtime in the memory of the process; this
needs their symbol tables (no `strip`). Threads and child processes become ranks of the same node and
read virtual time. If a thread waits in a way that the
node cannot observe for longer than --patience, the run continues but is no longer deterministic. If
nobody has acted for as long and no device works, allranks prints once what every thread is in.
When PROGRAM exits, allranks ends all processes that it left running.

Ranks. With --ranks the environment of each copy contains RANK, WORLD_SIZE, LOCAL_RANK,
LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR and MASTER_PORT (as torchrun sets them) and
OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK and _LOCAL_SIZE. When a rank fails, allranks ends the others
and exits with the code of the first rank that failed. A launcher works as well:
`allranks exec -- mpirun -n 4 PROGRAM`. Defaults in the environment (OMPI_MCA_...) keep Open MPI on
this machine, make it yield while it waits, and allow more ranks than cores.

Hosts. On a profile with several hosts a process sees only the devices of its own host, and the name
(`node0`, `node1`, ...) and boot id of that host. A rank runs on host rank / ranks-per-host. Any other
process runs on the host of its parent. ALLRANKS_HOST in the environment of a process overrides both.
`mpirun --host node0:4,node1:4` places ranks as on a cluster.

Faults. `link:A-B=RATE` reduces a link to the fraction RATE (0 to 1) of its rate in both directions.
`link:A-B=dead` disables it: kernels and copies that use it fail with CUDA_ERROR_NVLINK_UNCORRECTABLE.
`nic:NAME=...` and `gpu:NAME=...` apply to all links of one vertex. `rank:N=dead` kills the process of
a rank. `@TIME` (ns, us, ms, s of virtual time) sets the time of the fault. `allranks profile show`
lists the names.

Checking. --check compares every access of a kernel, a copy or a memset with PTX's memory model. It
reports accesses to the same bytes without an order, scopes that are too narrow, missing proxy fences,
reads of memory that was never written, accesses out of bounds, misused barriers, and memory that is
not freed at the end. It also reports functions of CUDA's runtime and driver that return an error to
the program's own code, not to libraries (api_error), with their arguments. Each finding is printed
once, with the source lines of both accesses, the missing order and a remedy. Compile with
`-lineinfo`, and with `-g` for the lines of host calls. Findings of the classes `portability` (the
program relies on more than PTX guarantees) and `leak` are printed but do not count.

Schedules. In schedule 0 loads return the newest values. Under another SEED a load may return any
value that the memory model permits, and warps start and wake late. The same seed gives the same run.
Schedules from 1000000 on are directed: level * 1000000 + n perturbs only the n-th place of the run
at which threads interact. --schedules N runs PROGRAM N more times, alternately under directed and
drawn schedules and several runs at a time, and merges the findings. The output of these runs is
shown only if they fail. Calls of different processes count as ordered in the order in which they
occur: synchronisation between processes outside of CUDA is not checked.

Failures. A kernel that fails (an illegal or misaligned address, an assertion, a trap, an illegal
instruction) or a kernel or copy over a dead link is reported on stderr when PROGRAM ends, with
kernel, block, thread, file and line. With --check a finding takes the place of the failure that it
explains, if it counts. Exit code 89 follows if PROGRAM exits with 0 all the same, whether it has asked
for the error or not: for a program that provokes failures on purpose there is --allow-faults. If
findings count as well, the code is 87.

Files. --findings writes what was found for other programs: JSON with all that is known; SARIF 2.1.0,
which code hosts show beside the lines of a change; JUnit XML, in which each finding that counts is
a failed test; or the text that is printed.

Stopping. After --timeout, and when allranks receives SIGINT or SIGTERM, it prints where every host
thread and warp stands, and for each stream what is not done yet, in order, before it ends the program
or passes the signal on. What the checker has found until then is printed as well. --timeout holds for
each run of --schedules. Ctrl-C in a terminal goes to PROGRAM itself, which says nothing of this.

Suppressions. The id of a finding does not change while its source lines do not change. A line of the
file of --suppress is `KIND ID` (printed under each finding), `KIND kernel:GLOB` or `KIND file:GLOB`.
KIND may be `*`, and `#` starts a comment. Findings that are suppressed, or excluded by --only,
--kernel or --file, do not count.

Exit codes: the program's own (128 + N if signal N killed it), or
  2    wrong usage
  70   the node itself failed
  86   deadlock or livelock; stderr lists the waiting threads and where they wait
  87   the program exited with 0, but --check has findings that count
  88   the program exited with 0, but kernels of it could not be loaded (no usable PTX)
  89   the program exited with 0, but kernels or copies of it failed (unless --allow-faults)
  124  --timeout has ended the program
  126  PROGRAM could not be started
  127  PROGRAM was not found

Environment:
  ALLRANKS_PROFILES  a folder that is searched for profiles first

The file of --trace is in Chrome's trace event format. Open ui.perfetto.dev in a browser and drop the
file there (nothing is uploaded), or load it in chrome://tracing. Times are virtual. The trace has a
process per rank (host threads, their calls of CUDA with arguments and source line, NVTX ranges and
marks), a process per device (streams with kernels, host functions and event records; the waits of
kernels, by loop; copy engines), and the links (the load of each direction, and faults). Arrows lead
from a call to the kernels, copies and memsets that it starts, and from a kernel's store, a copy or a
stream memory operation to the wait that it ends. Tracks with a number in parentheses contain slices
that overlap. The trace has at most a million slices.

--stats prints one row per kernel name, the slowest first: launches, total and median time, bytes
that its threads read and wrote, how many of these in memory of other devices or of hosts (remote),
and the shares of the rates of links and HBM that it achieved (docs/node.md defines them). Rows of
single kernels, links and movers follow. No line is longer than 120 columns; names are shortened in the middle.

NVTX. With --stats, --stats-json or --trace, ranges, marks, domains, registered strings, and names of
threads and streams that PROGRAM sets by NVTX 3 are recorded. They take no virtual time. exec sets
NVTX_INJECTION64_PATH for this, unless it is set. Categories, colours and payloads are ignored.

The JSON of --stats-json has the members
  version, profile, deterministic, nondeterministic_because[], virtual_ns, processes,
  thread_instructions, warp_instructions, copies{count, bytes}, checked{accesses, bytes},
  by_kernel[]: the launches of each kernel name, the slowest name first: name, calls, unfinished
             (launches that did not end; they count until virtual_ns), total_ns, median_ns,
             bytes_read, bytes_written, remote_bytes, link_share, hbm_share (0 to 1; null: no time)
  ranges[]:  NVTX ranges by name, the longest total first: domain (empty: the default one), name,
             calls, total_ns, longest_ns
  kernels[]: name, device, rank, grid[3], block[3], start_ns, end_ns (null: did not end),
             warp_instructions, thread_instructions, bytes_read, bytes_written, remote_bytes,
             link_share, hbm_share
  links[]:   links with traffic: name, kind, gbs (the rate of one direction),
             directions[2]: from, to, bytes{sm, tma, copy_engine, multicast, nic} (payload by
             mover), wire_bytes (with packet headers), packets, poll_bytes (of parked polls),
             efficiency (payload / wire_bytes), use (fraction of gbs over virtual_ns), busy_use
             (fraction of gbs from first_ns to last_ns); null without traffic
  movers{sm, tma, copy_engine, multicast, nic}: bytes (each counted once), link_bytes (counted once
             per link), wire_bytes, efficiency
  faults[]:  rank, device, status (a CUresult), message
  refused_images[]: why kernels of the program could not be loaded
  ptx_above_device: the target of PTX that is executed though the device is below it
  deadlock:  virtual_ns, livelock, waiters[] (rank, device, kernel, block[3], warp, lanes, file, line,
             what, object, offset, seen, writer, resident, others),
             hosts[] (rank, thread, call, state, since_ns))";

// Levels of directed schedules are those of node::Checking::SetSchedule.
std::string WhyNoSchedule(std::string& text) {
  const std::string why = Whole(0)(text);
  if (!why.empty()) return why;
  const std::uint64_t level = std::strtoull(text.c_str(), nullptr, 0) / 1'000'000;
  if (level <= 5) return "";
  return fmt::format(
      "schedule {} has level {}: directed schedules are level * 1000000 + n with a "
      "level from 1 to 5",
      text, level);
}

class ExecCommand : public Command {
 public:
  explicit ExecCommand(CLI::App* app);
  void Behind(const std::vector<std::string>& words) override { options_.command = words; }
  int Run() const override;

 private:
  ExecOptions options_;
  std::string format_, leaks_;
};

ExecCommand::ExecCommand(CLI::App* app) {
  command_ = app->add_subcommand("exec", "Run a CUDA program on a virtual node");
  command_->footer(kHelp);
  command_->formatter(std::make_shared<UsageFormatter>("exec [OPTIONS] -- PROGRAM [ARGS...]"));
  command_
      ->add_option("--profile", options_.profile,
                   "The simulated hardware: the name of a profile, or a path")
      ->option_text("PROFILE [h100x8]");
  command_
      ->add_option("--devices", options_.devices,
                   "Show the program only the first N devices of its host")
      ->option_text("N")
      ->check(Whole(1, 1024));
  command_->add_option("--ranks", options_.ranks, "Start N copies of PROGRAM as ranks (see below)")
      ->option_text("N")
      ->check(Whole(1, 1024));
  command_
      ->add_option("--ranks-per-host", options_.ranks_per_host,
                   "Ranks on each simulated host; the first ranks are on the first host")
      ->option_text("N [devices of a host]")
      ->check(Whole(1, 1024));
  command_->add_flag(
      "--no-redirect", options_.no_redirect,
      "Leave the static CUDA runtime of programs and libraries alone: they then find no "
      "driver that they accept");
  command_->add_flag("--allow-faults", options_.allow_faults,
                     "Exit with PROGRAM's own code although kernels of it failed (see below)");
  command_->add_flag(
      "--stats", options_.stats,
      "Print tables of kernels, NVTX ranges and links to stderr at the end (see below)");
  command_->add_option("--stats-json", options_.stats_json, "Write the statistics to FILE as JSON")
      ->option_text("FILE")
      ->check(OutputFile());
  CLI::Option* check = command_->add_flag(
      "--check", options_.check, "Report races, memory errors and misused barriers (see below)");
  command_
      ->add_option("--schedule", options_.schedule,
                   "With --check: use this schedule, one of the executions that PTX permits")
      ->option_text("SEED [0]")
      ->check(CLI::Validator(WhyNoSchedule, ""))
      ->needs(check);
  command_
      ->add_option("--schedules", options_.schedules,
                   "With --check: run N more schedules, drawn and directed, and merge the findings")
      ->option_text("N [0]")
      ->check(Whole(0, 10'000))
      ->needs(check);
  command_->add_option("-j,--jobs", options_.jobs, "Number of concurrent runs of --schedules")
      ->option_text("N [cores]")
      ->check(Whole(1, 1024));
  command_
      ->add_option("--suppress", options_.listing.suppress,
                   "With --check: suppress the findings that FILE lists (see below)")
      ->option_text("FILE")
      ->check(InputFile())
      ->needs(check);
  command_->add_option("--max-findings", options_.listing.most, "Print at most N findings")
      ->option_text("N [20]")
      ->check(Whole(0, 1'000'000'000))
      ->needs(check);
  AddWords(command_, "--only", &options_.listing.only, node::KindNames(),
           "Only findings of these kinds")
      ->option_text("KIND,...")
      ->needs(check);
  command_
      ->add_option("--kernel", options_.listing.kernels,
                   "Only findings with an access in a kernel that matches GLOB")
      ->option_text("GLOB")
      ->needs(check);
  command_
      ->add_option("--file", options_.listing.files,
                   "Only findings with an access in a source file that matches GLOB")
      ->option_text("GLOB")
      ->needs(check);
  AddWords(command_, "--count", &options_.listing.also, {"portability", "leak"},
           "Also count findings of these kinds: portability, leak")
      ->option_text("KIND,...")
      ->needs(check);
  CLI::Option* findings =
      command_
          ->add_option("--findings", options_.findings,
                       "With --check: write findings to FILE, in the format of its name")
          ->option_text("FILE")
          ->check(OutputFile())
          ->needs(check);
  command_->add_option("--format", format_, "Format of --findings: text, json, sarif or junit")
      ->option_text("FORMAT [.txt, .sarif, .xml, else json]")
      ->check(OneOf({"text", "json", "sarif", "junit"}))
      ->needs(findings);
  command_->add_option("--leaks", leaks_, "With --check: print leaks not, in one line, or in full")
      ->option_text("no|summary|full [summary]")
      ->check(OneOf({"no", "summary", "full"}))
      ->needs(check);
  command_->add_option("--fault", options_.faults, "Inject a fault (see below); repeatable")
      ->option_text("KIND:NAME=STATE[@TIME]");
  command_->add_option("--trace", options_.trace, "Write a timeline to FILE, for ui.perfetto.dev")
      ->option_text("FILE")
      ->check(OutputFile());
  command_
      ->add_option("--timeout", options_.timeout_s,
                   "Wall time after which the program is ended, and its state printed")
      ->option_text("SECONDS [none]")
      ->check(Number(0.01, 1e7, "seconds"));
  command_
      ->add_option("--patience", options_.patience_s,
                   "Wall time for which the node waits for a silent thread")
      ->option_text("SECONDS [3]")
      ->check(Number(0.01, 1e6, "seconds"));
}

int ExecCommand::Run() const {
  if (options_.command.empty())
    return Usage("no program to run; usage: allranks exec [OPTIONS] -- PROGRAM [ARGS...]");
  if (options_.ranks_per_host > 0 && options_.ranks == 0)
    return Usage("--ranks-per-host has an effect only with --ranks N: add it");
  if (const auto refused = WhyNotStarted(options_.command[0])) {
    Say("{}", refused->why);
    return refused->code;
  }
  ExecOptions options = options_;
  options.format = FormatNamed(format_);
  using Leaks = FindingOptions::Leaks;
  if (!leaks_.empty())
    options.listing.leaks = leaks_ == "no"     ? Leaks::kNo
                            : leaks_ == "full" ? Leaks::kFull
                                               : Leaks::kSummary;
  return Exec(options);
}

}  // namespace

std::unique_ptr<Command> MakeExecCommand(CLI::App* app) {
  return std::make_unique<ExecCommand>(app);
}

}  // namespace allranks::cli
