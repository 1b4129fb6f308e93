// `allranks`: the command line. Its --help is the manual; docs/cli.md is generated from it by the
// hidden command `docs`, and tests/cli compares the two.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/api.h"
#include "cli/command.h"
#include "cli/exec.h"
#include "cli/profile.h"
#include "cli/ptx.h"
#include "cli/ranks.h"
#include "cli/usage.h"
#include "server/node_process.h"

namespace {

using allranks::cli::ExecOptions;
using allranks::cli::UsageFormatter;

constexpr const char* kExecHelp =
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
not freed at the end. Each finding is printed once, with the source lines of both accesses, the
missing order and a remedy. Compile with `-lineinfo`, and with `-g` for the lines of host calls.
Findings of the classes `portability` (the program relies on more than PTX guarantees) and `leak` are
printed but do not count.

Schedules. In schedule 0 loads return the newest values. Under another SEED a load may return any
value that the memory model permits, and warps start and wake late. The same seed gives the same run.
Schedules from 1000000 on are directed: level * 1000000 + n perturbs only the n-th place of the run
at which threads interact. --schedules N runs PROGRAM N more times, alternately under directed and
drawn schedules and several runs at a time, and merges the findings. The output of these runs is
shown only if they fail. Calls of different processes count as ordered in the order in which they
occur: synchronisation between processes outside of CUDA is not checked.

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
  126  PROGRAM could not be started
  127  PROGRAM was not found

Environment:
  ALLRANKS_PROFILES  a folder that is searched for profiles first

The file of --trace is in Chrome's trace event format. Open ui.perfetto.dev in a browser and drop the
file there (nothing is uploaded), or load it in chrome://tracing. Times are virtual. The trace has a
process per rank (host threads and their calls), a process per device (streams with kernels, host
functions and event records; the waits of kernels, by loop; copy engines), and the links (the load of
each direction, and faults). Tracks with a number in parentheses contain slices that overlap. The
trace has at most a million slices.

The JSON of --stats-json has the members
  version, profile, deterministic, nondeterministic_because[], virtual_ns, processes,
  thread_instructions, warp_instructions, copies{count, bytes}, checked{accesses, bytes},
  kernels[]: name, device, rank, grid[3], block[3], start_ns, end_ns (null: did not end),
             warp_instructions, thread_instructions, bytes_read, bytes_written, remote_bytes
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

constexpr const char* kPtxHelp =
    R"(Reports how the node decodes PTX, without executing it. FILE is PTX text, a fat binary, or a host
program or object compiled by nvcc.

Without --coverage: for each kernel and device function the registers (from the machine code next to
the PTX; `about` without machine code), static shared and local memory, the number of instructions,
and the instructions that the node does not support, with their source lines. Such an instruction is
a fault only if a thread executes it.

With --coverage: for all files together the number of distinct instruction forms (the dotted name,
and the special registers read), how many are parsed and how many are executable, and a list of the
others with their counts and first locations. Objects compiled with -rdc=true are read separately: a
call into another object counts as not executable.

Exit codes: 0; 1 if a FILE has no PTX or cannot be parsed, or if the executable share is below
--min-executable; 2 wrong usage.

The JSON has the members version, errors[],
  kernels[]: image, name, entry, registers, registers_known, shared_bytes, local_bytes,
             instructions, error, unsupported[] (form, count, first)
  coverage:  forms, parsed, executable, not_parsed[] (form, count),
             not_executable[] (form, count, unsupported, first, because))";

constexpr const char* kApiHelp =
    R"(Lists every function of CUDA's runtime and driver libraries, and whether it works on the virtual
node or which error it returns. The list is read from the libraries that programs load. The suffixes
_ptsz and _ptds mark the variants for `nvcc --default-stream per-thread`; _v2 and the like mark
versions.

The JSON has the members version, runtime and driver (library, functions, work),
  functions[]: api, name, works, error)";

constexpr const char* kProfileHelp =
    R"(Describes the hardware that can be simulated. A profile is a TOML file, named or given as a path.

list   name, devices, hosts, validation against published measurements (fitted; rough: constants
       have the right magnitude; untested), and a description
show   the device's figures; the links, with the payload rate of loads, stores, bulk copies and copy
       engines in one direction; the topology as a tree; and the route from each device to each
       other device, CPU and NIC: its links, its latency, and the rate of its narrowest link with
       packet headers.
       With --constants: every constant with its source
diff   the keys in which two profiles differ, with both values; for lists of wires, the wires that
       only one profile has

Exit codes: 0; 2 wrong usage, or a profile that is missing or invalid.)";

struct Commands {
  CLI::App app{"AllRanks: a virtual multi-GPU node for CUDA programs.", "allranks"};
  CLI::App* exec = nullptr;
  CLI::App* ptx = nullptr;
  CLI::App* api = nullptr;
  CLI::App* profile = nullptr;
  CLI::App* profile_list = nullptr;
  CLI::App* profile_show = nullptr;
  CLI::App* profile_diff = nullptr;
  CLI::App* node = nullptr;
  CLI::App* ranks = nullptr;
  CLI::App* docs = nullptr;
  ExecOptions exec_options;
  allranks::cli::PtxOptions ptx_options;
  allranks::cli::ApiOptions api_options;
  std::string profile_a, profile_b;
  bool constants = false;
  allranks::server::NodeOptions node_options;
  allranks::cli::RankOptions rank_options;
  std::vector<std::unique_ptr<allranks::cli::Command>> others;

  Commands() {
    app.set_version_flag("--version", std::string("allranks ") + ALLRANKS_VERSION,
                         "Print the version and exit");
    app.set_help_flag("-h,--help", "Print this help and exit");
    app.require_subcommand(1);

    exec = app.add_subcommand("exec", "Run a CUDA program on a virtual node");
    exec->footer(kExecHelp);
    exec->formatter(std::make_shared<UsageFormatter>("exec [OPTIONS] -- PROGRAM [ARGS...]"));
    exec->add_option("--profile", exec_options.profile,
                     "The simulated hardware: the name of a profile, or a path")
        ->option_text("PROFILE [h100x8]");
    exec->add_option("--devices", exec_options.devices,
                     "Show the program only the first N devices of its host")
        ->option_text("N")
        ->check(CLI::Range(1, 1024));
    exec->add_option("--ranks", exec_options.ranks,
                     "Start N copies of PROGRAM as ranks (see below)")
        ->option_text("N")
        ->check(CLI::Range(1, 1024));
    exec->add_option("--ranks-per-host", exec_options.ranks_per_host,
                     "Ranks on each simulated host; the first ranks are on the first host")
        ->option_text("N [devices of a host]")
        ->check(CLI::Range(1, 1024));
    exec->add_flag(
        "--no-redirect", exec_options.no_redirect,
        "Leave the static CUDA runtime of programs and libraries alone: they then find no "
        "driver that they accept");
    exec->add_flag("--stats", exec_options.stats,
                   "Print a table of kernels, copies and links to stderr at the end");
    exec->add_option("--stats-json", exec_options.stats_json,
                     "Write the statistics to FILE as JSON")
        ->option_text("FILE");
    CLI::Option* check =
        exec->add_flag("--check", exec_options.check,
                       "Report races, memory errors and misused barriers (see below)");
    exec->add_option("--schedule", exec_options.schedule,
                     "With --check: use this schedule, one of the executions that PTX permits")
        ->option_text("SEED [0]")
        ->needs(check);
    exec->add_option(
            "--schedules", exec_options.schedules,
            "With --check: run N more schedules, drawn and directed, and merge the findings")
        ->option_text("N [0]")
        ->check(CLI::Range(0, 10'000))
        ->needs(check);
    exec->add_option("-j,--jobs", exec_options.jobs, "Number of concurrent runs of --schedules")
        ->option_text("N [cores]")
        ->check(CLI::Range(1, 1024));
    exec->add_option("--suppress", exec_options.listing.suppress,
                     "With --check: suppress the findings that FILE lists (see below)")
        ->option_text("FILE")
        ->needs(check);
    exec->add_option("--max-findings", exec_options.listing.most, "Print at most N findings")
        ->option_text("N [20]")
        ->needs(check);
    exec->add_option("--only", exec_options.listing.only, "Only findings of these kinds")
        ->option_text("KIND,...")
        ->delimiter(',')
        ->needs(check);
    exec->add_option("--kernel", exec_options.listing.kernels,
                     "Only findings with an access in a kernel that matches GLOB")
        ->option_text("GLOB")
        ->needs(check);
    exec->add_option("--file", exec_options.listing.files,
                     "Only findings with an access in a source file that matches GLOB")
        ->option_text("GLOB")
        ->needs(check);
    exec->add_option("--count", exec_options.listing.also,
                     "Also count findings of these kinds: portability, leak")
        ->option_text("KIND,...")
        ->delimiter(',')
        ->needs(check);
    exec->add_option("--findings", exec_options.findings,
                     "With --check: write findings to FILE as JSON")
        ->option_text("FILE")
        ->needs(check);
    exec->add_option("--fault", exec_options.faults, "Inject a fault (see below); repeatable")
        ->option_text("KIND:NAME=STATE[@TIME]");
    exec->add_option("--trace", exec_options.trace, "Write a timeline to FILE, for ui.perfetto.dev")
        ->option_text("FILE");
    exec->add_option("--patience", exec_options.patience_s,
                     "Wall time for which the node waits for a silent thread")
        ->option_text("SECONDS [3]")
        ->check(CLI::Range(0.01, 1e6));

    ptx = app.add_subcommand("ptx", "Report how the node decodes PTX");
    ptx->footer(kPtxHelp);
    ptx->formatter(std::make_shared<UsageFormatter>("ptx [OPTIONS] FILE..."));
    ptx->add_option("FILE", ptx_options.files, "PTX text, fat binaries, programs, objects")
        ->option_text("...")
        ->required();
    ptx->add_flag("--coverage", ptx_options.coverage,
                  "Count instruction forms over all files instead of listing kernels");
    ptx->add_option("--min-executable", ptx_options.min_executable,
                    "Fail if a smaller share of the forms is executable")
        ->option_text("PERCENT")
        ->check(CLI::Range(0.0, 100.0));
    ptx->add_flag("--json", ptx_options.json, "Print kernels and coverage as JSON");

    api = app.add_subcommand("api", "List which CUDA functions work");
    api->footer(kApiHelp);
    api->formatter(std::make_shared<UsageFormatter>("api [OPTIONS] [TEXT]"));
    api->add_option("TEXT", api_options.filter, "Only functions with TEXT in their names");
    api->add_flag("--missing", api_options.missing, "Only functions that do not work");
    api->add_flag("--json", api_options.json, "Print the list as JSON");

    profile = app.add_subcommand("profile", "List, draw and compare simulated hardware");
    profile->footer(kProfileHelp);
    profile->formatter(std::make_shared<UsageFormatter>(
        "profile list | show [--constants] NAME | diff NAME NAME"));
    profile->require_subcommand(1);
    profile_list = profile->add_subcommand("list", "List the profiles");
    profile_show =
        profile->add_subcommand("show", "Print one profile: figures, links, topology, routes");
    profile_show->add_option("NAME", profile_a, "Name or path")->required();
    profile_show->add_flag("--constants", constants,
                           "Print every constant with its source instead");
    profile_diff = profile->add_subcommand("diff", "Print the differences between two profiles");
    profile_diff->add_option("A", profile_a, "Name or path")->required();
    profile_diff->add_option("B", profile_b, "Name or path")->required();

    others = allranks::cli::MakeCommands(&app);

    node = app.add_subcommand("node")->group("");
    node->add_option("--listen", node_options.listen_fd);
    node->add_option("--control", node_options.control_fd)->required();
    node->add_option("--folder", node_options.folder);
    node->add_option("--profile", node_options.profile)->required();
    node->add_option("--devices", node_options.machine.devices);
    node->add_flag("--check", node_options.machine.check);
    node->add_option("--seed", node_options.machine.seed);
    node->add_option("--patience-ms", node_options.patience_ms);
    node->add_option("--trace-fd", node_options.trace_fd);
    node->add_option("--ranks-per-host", node_options.ranks_per_host);
    node->add_option("--fault", node_options.faults);
    node->add_option("--judge-listen", node_options.judge_listen_fds);
    node->add_option("--judge-inputs", node_options.judge_inputs_fd);
    node->add_option("--judge-library", node_options.judge_libraries);
    node->add_option("--memory-limit", node_options.machine.memory_limit);
    node->add_option("--secret", node_options.secret);
    node->add_option("--judge-outputs", node_options.judge_outputs_fd);

    ranks = app.add_subcommand("ranks")->group("");
    ranks->add_option("ranks", rank_options.ranks)->required()->check(CLI::Range(1, 1024));
    ranks->add_option("per_host", rank_options.per_host)->required()->check(CLI::Range(1, 1024));

    docs = app.add_subcommand("docs")->group("");
  }
};

void PrintDocs() {
  Commands commands;  // one that has parsed nothing: help depends on that
  fmt::print(
      "# The command line\n\n"
      "`allranks docs` prints this page from the help texts of the program.\n\n"
      "## allranks --help\n\n```text\n{}```\n\n"
      "## allranks exec --help\n\n```text\n{}```\n\n"
      "## allranks ptx --help\n\n```text\n{}```\n\n"
      "## allranks api --help\n\n```text\n{}```\n\n"
      "## allranks profile --help\n\n```text\n{}```\n",
      commands.app.help(), commands.exec->help(), commands.ptx->help(), commands.api->help(),
      commands.profile->help());
  for (const auto& command : commands.others)
    fmt::print("\n## allranks {} --help\n\n```text\n{}```\n", command->name(), command->help());
}

}  // namespace

int main(int argc, char** argv) {
  // A remote shell's options are its command's, too.
  if (argc > 1 && std::string(argv[1]) == "rsh")
    return allranks::cli::RunOnHost(argc - 2, argv + 2);
  Commands commands;
  // Everything after `--` is the program's, whatever it looks like.
  std::vector<std::string> own;
  bool separated = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (!separated && argument == "--") {
      separated = true;
    } else if (separated) {
      commands.exec_options.command.push_back(argument);
    } else {
      own.push_back(argument);
    }
  }
  try {
    std::vector<std::string> reversed(own.rbegin(), own.rend());
    commands.app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return commands.app.exit(error) == 0 ? 0 : allranks::cli::kExitUsage;
  }
  if (commands.exec->parsed()) {
    if (commands.exec_options.command.empty()) {
      fmt::print(stderr,
                 "allranks: no program to run; usage: allranks exec [OPTIONS] -- PROGRAM "
                 "[ARGS...]\n");
      return allranks::cli::kExitUsage;
    }
    return allranks::cli::Exec(commands.exec_options);
  }
  if (commands.ptx->parsed()) return allranks::cli::Ptx(commands.ptx_options);
  if (commands.api->parsed()) return allranks::cli::Api(commands.api_options);
  if (commands.profile_list->parsed()) return allranks::cli::ProfileList();
  if (commands.profile_show->parsed())
    return allranks::cli::ProfileShow(commands.profile_a, commands.constants);
  if (commands.profile_diff->parsed())
    return allranks::cli::ProfileDiff(commands.profile_a, commands.profile_b);
  for (const auto& command : commands.others)
    if (command->parsed()) return command->Run();
  if (commands.node->parsed()) return allranks::server::RunNode(commands.node_options);
  if (commands.ranks->parsed()) {
    commands.rank_options.command = commands.exec_options.command;
    return allranks::cli::StartRanks(commands.rank_options);
  }
  PrintDocs();
  return 0;
}
