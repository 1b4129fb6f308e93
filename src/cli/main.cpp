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

The program must be built with `nvcc -cudart shared` and carry PTX (nvcc's default). Threads and
child processes become ranks of the same node; what they read as time is virtual. If they wait in
ways that the node cannot see for longer than the patience, the run goes on but is no longer
deterministic. When PROGRAM has ended, whatever it left running is ended too.

Ranks. With --ranks each copy finds RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK,
MASTER_ADDR and MASTER_PORT (as torchrun sets them) and OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK
and _LOCAL_SIZE in its environment. When one fails the others are ended, and the exit code is that
of the first to fail. A launcher does as well: `allranks exec -- mpirun -n 4 PROGRAM`; unless the
environment says otherwise Open MPI is told (OMPI_MCA_...) to stay on this machine, to yield when it
waits, and not to count cores.

Hosts. On a profile with several hosts a process sees the devices of its own host only, and a name
(`node0`, `node1`, ...) and boot id that are its host's. A rank is on the host rank / ranks-per-host,
other processes are where their parents are, and ALLRANKS_HOST in a process's environment overrides
both. `mpirun --host node0:4,node1:4` places ranks as on a cluster.

Faults. `link:A-B=RATE` leaves a link RATE (0 to 1) of its rate in both directions, `link:A-B=dead`
kills it: kernels and copies that use it end with CUDA_ERROR_NVLINK_UNCORRECTABLE. `nic:NAME=...` and
`gpu:NAME=...` mean all links of one vertex, `rank:N=dead` kills a rank's process. `@TIME` (ns, us,
ms, s of virtual time) says when. `allranks profile show` lists the names.

Checking. With --check every access of a kernel, a copy or a memset is held against PTX's memory
model: accesses to the same bytes that nothing orders, too narrow scopes, missing fences between
proxies, reads of memory that nobody has written, accesses out of bounds, misused barriers, memory
that is left at the end. Each finding is printed once with the source lines of both accesses, what
order is missing and what would create it (compile with `-lineinfo`, and with `-g` for the lines of
host calls). `portability` (relying on more than PTX promises) and `leak` are printed, too, but do not
count. Schedule 0 shows the newest values;
under another SEED a load may return any value that the model permits, and warps start and wake a
little late. The same seed gives the same run. From 1000000 on schedules are directed: level * 1000000
+ n delays somebody at the n-th place of the run where threads meet, and nothing else is changed.
--schedules N runs PROGRAM N more times, under directed and drawn schedules in turn, several runs at
a time; their output is shown only if they fail, and findings are merged. Calls of several processes
count as ordered in the order in which they happen: what orders processes outside of CUDA is not
checked.

Suppressions. Each finding has an id that stays the same while its source lines do. A line of the file
of --suppress is `KIND ID` (printed under each finding), `KIND kernel:GLOB` or `KIND file:GLOB`; KIND
may be `*`, and `#` begins a comment. What is suppressed or left out by --only, --kernel or --file does
not count.

Exit codes: the program's own (128 + N if signal N killed it), or
  2    wrong usage
  70   the node itself failed
  86   deadlock or livelock; who waits where is printed to stderr
  87   the program ended with 0, but --check has findings that count against it
  126  PROGRAM could not be started
  127  PROGRAM was not found

Environment:
  ALLRANKS_PROFILES  a folder to look for profiles in first

The file of --trace is in Chrome's trace event format: open ui.perfetto.dev in a browser and drop the
file there (nothing is uploaded), or load it in chrome://tracing. Times are virtual. It has a process
per rank (host threads and their calls), one per device (streams with kernels, host functions and
event records; where kernels wait, by loop; copy engines), and the links: how much each direction
carries, and when faults came.
Tracks with a number in parentheses hold what overlaps. At most a million slices are kept.

The JSON of --stats-json has the members
  version, profile, deterministic, nondeterministic_because[], virtual_ns, processes,
  thread_instructions, warp_instructions, copies{count, bytes}, checked{accesses, bytes},
  kernels[]: name, device, rank, grid[3], block[3], start_ns, end_ns (null: did not end),
             warp_instructions, thread_instructions, bytes_read, bytes_written, remote_bytes
  links[]:   that carried something: name, kind, gbs (what one direction can carry),
             directions[2]: from, to, bytes{sm, tma, copy_engine, multicast, nic} (payload by who
             moved it), wire_bytes (with packet headers), packets, poll_bytes (of parked polls),
             efficiency (payload of wire bytes), use (of gbs, over virtual_ns), busy_use (of gbs,
             from first_ns to last_ns); null where nothing went
  movers{sm, tma, copy_engine, multicast, nic}: bytes (each once), link_bytes (once per link that
             they passed), wire_bytes, efficiency
  faults[]:  rank, device, status (a CUresult), message
  deadlock:  virtual_ns, livelock, waiters[] (rank, device, kernel, block[3], warp, lanes, file, line,
             what, object, offset, seen, writer, resident, others),
             hosts[] (rank, thread, call, state, since_ns))";

constexpr const char* kPtxHelp =
    R"(Says what the node makes of PTX, without running it. FILE is PTX text, a fat binary, or a host
program or object made by nvcc.

Without --coverage: per kernel and device function the registers (from the machine code beside the
PTX; `about` if there is none), static shared and local memory, the number of instructions, and the
instructions that the node has no semantics for, with their source lines. Such an instruction is a
fault only if a thread gets there.

With --coverage: over all files together, how many distinct instruction forms there are (the dotted
name, and the special registers read), how many of them could be parsed and how many are executable,
and a list of the others with their counts and the place of the first. Objects of -rdc=true are read
one by one: a call into another object counts as not executable.

Exit codes: 0; 1 if a FILE has no PTX or cannot be parsed, or if less is executable than
--min-executable asks for; 2 wrong usage.

The JSON has the members version, errors[],
  kernels[]: image, name, entry, registers, registers_known, shared_bytes, local_bytes,
             instructions, error, unsupported[] (form, count, first)
  coverage:  forms, parsed, executable, not_parsed[] (form, count),
             not_executable[] (form, count, unsupported, first, because))";

constexpr const char* kApiHelp =
    R"(Lists every function of CUDA's runtime and driver libraries and whether it works on the virtual
node or which error it returns, by looking into the libraries that programs are given. Names with
_ptsz and _ptds are what `nvcc --default-stream per-thread` makes of others; _v2 and the like are
versions.

The JSON has the members version, runtime and driver (library, functions, work),
  functions[]: api, name, works, error)";

constexpr const char* kProfileHelp =
    R"(Says which hardware can be simulated. A profile is a TOML file, given by its name or by a path.

list   name, devices, hosts, how far it was compared with published measurements (fitted: yes;
       rough: its constants are of the right size; untested: no), and what it is
show   the device's figures; the links, with the payload that loads, stores, bulk copies and copy
       engines get through one direction; the topology as a tree; and which way leads from each
       device to each other device, CPU and NIC: its links, its latency and what its narrowest link
       carries, packet headers included.
       With --constants every constant with the source that the file names for it
diff   the keys in which two profiles differ, with both values; of lists of wires the wires that the
       other has not

Exit codes: 0; 2 wrong usage, or a profile that is missing or wrong.)";

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
                     "Start N copies of PROGRAM as ranks, each told who it is (see below)")
        ->option_text("N")
        ->check(CLI::Range(1, 1024));
    exec->add_option("--ranks-per-host", exec_options.ranks_per_host,
                     "Ranks on each simulated host, the first ones on the first")
        ->option_text("N [devices of a host]")
        ->check(CLI::Range(1, 1024));
    exec->add_flag("--stats", exec_options.stats, "Print a table of what ran to stderr at the end");
    exec->add_option("--stats-json", exec_options.stats_json, "Write it to FILE as JSON")
        ->option_text("FILE");
    CLI::Option* check =
        exec->add_flag("--check", exec_options.check,
                       "Look for races, memory errors and misused barriers (see below)");
    exec->add_option("--schedule", exec_options.schedule,
                     "With --check: another of the orders and values that PTX permits")
        ->option_text("SEED [0]")
        ->needs(check);
    exec->add_option(
            "--schedules", exec_options.schedules,
            "With --check: run N further schedules, drawn and directed, and merge findings")
        ->option_text("N [0]")
        ->check(CLI::Range(0, 10'000))
        ->needs(check);
    exec->add_option("-j,--jobs", exec_options.jobs, "Runs of --schedules at a time")
        ->option_text("N [cores]")
        ->check(CLI::Range(1, 1024));
    exec->add_option("--suppress", exec_options.listing.suppress,
                     "With --check: leave out the findings that FILE lists (see below)")
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
                     "Only findings with an access in a kernel like GLOB")
        ->option_text("GLOB")
        ->needs(check);
    exec->add_option("--file", exec_options.listing.files,
                     "Only findings with an access in a source file like GLOB")
        ->option_text("GLOB")
        ->needs(check);
    exec->add_option("--count", exec_options.listing.also,
                     "Kinds that count, too: portability, leak")
        ->option_text("KIND,...")
        ->delimiter(',')
        ->needs(check);
    exec->add_option("--findings", exec_options.findings,
                     "With --check: write findings to FILE as JSON")
        ->option_text("FILE")
        ->needs(check);
    exec->add_option("--fault", exec_options.faults,
                     "Let something go wrong (see below); may be given several times")
        ->option_text("KIND:NAME=STATE[@TIME]");
    exec->add_option("--trace", exec_options.trace,
                     "Write what happened when to FILE, for ui.perfetto.dev")
        ->option_text("FILE");
    exec->add_option("--patience", exec_options.patience_s,
                     "Wall time for which a silent thread may hold up others")
        ->option_text("SECONDS [3]")
        ->check(CLI::Range(0.01, 1e6));

    ptx = app.add_subcommand("ptx", "Show what the node makes of PTX");
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
    ptx->add_flag("--json", ptx_options.json, "Print both as JSON");

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
    profile_list = profile->add_subcommand("list", "Which profiles there are");
    profile_show = profile->add_subcommand("show", "One profile: figures, links, topology, ways");
    profile_show->add_option("NAME", profile_a, "Name or path")->required();
    profile_show->add_flag("--constants", constants, "Every constant with its source instead");
    profile_diff = profile->add_subcommand("diff", "What is different in two profiles");
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
      "This page is printed by `allranks docs` from the program's own help.\n\n"
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
