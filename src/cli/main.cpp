// `allranks`: the command line. Its --help is the manual; docs/cli.md is generated from it by the
// hidden command `docs`, and tests/cli compares the two. `docs --install FOLDER` writes manual
// pages and completions of shells (cli/manual.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/api.h"
#include "cli/command.h"
#include "cli/exec.h"
#include "cli/manual.h"
#include "cli/paths.h"
#include "cli/profile.h"
#include "cli/ptx.h"
#include "cli/ranks.h"
#include "cli/usage.h"
#include "cli/usage_error.h"
#include "cli/values.h"
#include "cli/version.h"
#include "server/node_process.h"

namespace {

using allranks::cli::InputFile;
using allranks::cli::Number;
using allranks::cli::UsageFormatter;

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
--min-executable; 2 wrong usage, or a FILE that cannot be read.

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

Exit codes: 0; 1 if no function has TEXT in its name; 2 wrong usage; 70 internal error.

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
  std::unique_ptr<allranks::cli::Command> exec;
  CLI::App* ptx = nullptr;
  CLI::App* api = nullptr;
  CLI::App* profile = nullptr;
  CLI::App* profile_list = nullptr;
  CLI::App* profile_show = nullptr;
  CLI::App* profile_diff = nullptr;
  CLI::App* node = nullptr;
  CLI::App* ranks = nullptr;
  CLI::App* docs = nullptr;
  allranks::cli::PtxOptions ptx_options;
  allranks::cli::ApiOptions api_options;
  std::string profile_a, profile_b;
  bool constants = false;
  allranks::server::NodeOptions node_options;
  allranks::cli::RankOptions rank_options;
  std::string docs_folder;
  std::vector<std::unique_ptr<allranks::cli::Command>> others;

  Commands() {
    app.set_version_flag("--version", allranks::cli::LongVersion(),
                         "Print version, commit, and what decides the results; then exit");
    app.set_help_flag("-h,--help", "Print this help and exit");
    app.require_subcommand(1);

    exec = allranks::cli::MakeExecCommand(&app);

    ptx = app.add_subcommand("ptx", "Report how the node decodes PTX");
    ptx->footer(kPtxHelp);
    ptx->formatter(std::make_shared<UsageFormatter>("ptx [OPTIONS] FILE..."));
    ptx->add_option("FILE", ptx_options.files, "PTX text, fat binaries, programs, objects")
        ->option_text("...")
        ->check(InputFile())
        ->required();
    ptx->add_flag("--coverage", ptx_options.coverage,
                  "Count instruction forms over all files instead of listing kernels");
    ptx->add_option("--min-executable", ptx_options.min_executable,
                    "Fail if a smaller share of the forms is executable")
        ->option_text("PERCENT")
        ->check(Number(0, 100, "percent"));
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
    profile_show
        ->add_option("NAME", profile_a, "Name or path; `allranks profile list` lists the names")
        ->required();
    profile_show->add_flag("--constants", constants,
                           "Print every constant with its source instead");
    profile_diff = profile->add_subcommand("diff", "Print the differences between two profiles");
    profile_diff->add_option("A", profile_a, "Name or path of the first profile")->required();
    profile_diff->add_option("B", profile_b, "Name or path of the second profile")->required();

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
    node->add_option("--index-folder", node_options.machine.index_folder);
    node->add_option("--judge-outputs", node_options.judge_outputs_fd);

    ranks = app.add_subcommand("ranks")->group("");
    ranks->add_option("ranks", rank_options.ranks)->required()->check(CLI::Range(1, 1024));
    ranks->add_option("per_host", rank_options.per_host)->required()->check(CLI::Range(1, 1024));

    docs = app.add_subcommand("docs")->group("");
    docs->add_option("--install", docs_folder);
    allranks::cli::AddCommonChecks(&app);
  }
};

// What every subcommand's exit code means. tests/cli/wrong_inputs.tsv holds it.
constexpr const char* kExitCodes =
    R"(## Exit codes

One rule holds for all subcommands. A wrong command line is found before any work begins: no program
runs, no compiler starts, no request is sent, no file is written. Messages are on stderr, begin with
`allranks: `, and say what is wrong, what is allowed and the nearest right word.

| Code | Meaning | Of which subcommands |
| --- | --- | --- |
| 0 | done; the answer is yes | all |
| 1 | the answer is no: no pass, a failed check, an unfinished sample, a FILE without PTX | `ptx`, `api`, `judge`, `problems check`, `run`, `doctor` |
| 2 | wrong usage: an option, a value, a path, a name, or a file with settings that is invalid | all |
| 70 | internal error, or output that cannot be written | all |
| 86, 87, 88, 89, 124 | deadlock; findings that count; kernels that could not be loaded; kernels that failed; `--timeout` | `exec` |
| 126, 127 | PROGRAM could not be started; was not found | `exec` |
| 130 | stopped by Ctrl-C or SIGTERM | `run` |
| other | the code of PROGRAM itself, 128 + N if signal N killed it | `exec` |

)";

void PrintDocs() {
  Commands commands;  // one that has parsed nothing: help depends on that
  fmt::print(
      "# The command line\n\n"
      "`allranks docs` prints this page from the help texts of the program.\n\n"
      "{}"
      "## allranks --help\n\n```text\n{}```\n\n"
      "## allranks exec --help\n\n```text\n{}```\n\n"
      "## allranks ptx --help\n\n```text\n{}```\n\n"
      "## allranks api --help\n\n```text\n{}```\n\n"
      "## allranks profile --help\n\n```text\n{}```\n",
      kExitCodes, commands.app.help(), commands.exec->help(), commands.ptx->help(),
      commands.api->help(), commands.profile->help());
  for (const auto& command : commands.others)
    fmt::print("\n## allranks {} --help\n\n```text\n{}```\n", command->name(), command->help());
}

int Main(int argc, char** argv) {
  // A remote shell's options are its command's, too.
  if (argc > 1 && std::string(argv[1]) == "rsh")
    return allranks::cli::RunOnHost(argc - 2, argv + 2);
  Commands commands;
  // Everything after `--` is the program's, whatever it looks like.
  std::vector<std::string> own, behind;
  bool separated = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (!separated && argument == "--") {
      separated = true;
    } else if (separated) {
      behind.push_back(argument);
    } else {
      own.push_back(argument);
    }
  }
  try {
    std::vector<std::string> reversed(own.rbegin(), own.rend());
    commands.app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return commands.app.exit(error);  // --help, --version
    std::fputs(allranks::cli::ExplainUsage(commands.app, error, behind).c_str(), stderr);
    return allranks::cli::kExitUsage;
  }
  if (const std::string wrong = allranks::cli::ExplainTogether(commands.app); !wrong.empty()) {
    std::fputs(wrong.c_str(), stderr);
    return allranks::cli::kExitUsage;
  }
  if (commands.exec->parsed()) {
    commands.exec->Behind(behind);
    return commands.exec->Run();
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
    commands.rank_options.command = behind;
    return allranks::cli::StartRanks(commands.rank_options);
  }
  if (commands.docs_folder.empty()) {
    PrintDocs();
    return 0;
  }
  return allranks::cli::WriteManual(Commands().app, commands.docs_folder)
             ? 0
             : allranks::cli::kExitInternal;
}

}  // namespace

// Whatever a command printed has to arrive: a disk that is full must not end with 0.
int main(int argc, char** argv) {
  int code = 0;
  std::string why;
  try {
    code = Main(argc, argv);
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) throw;
    why = error.code().message();
  }
  if (why.empty() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (why.empty()) why = std::strerror(errno);
  std::fprintf(stderr, "allranks: cannot write standard output: %s\n", why.c_str());
  return allranks::cli::kExitInternal;
}
