#include "cli/judge.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/words.h"
#include "cli/exec.h"
#include "cli/judge_tools.h"
#include "cli/meter.h"
#include "cli/paths.h"
#include "cli/places.h"
#include "cli/usage.h"
#include "cli/values.h"
#include "judge/report.h"
#include "node/hardware/profile.h"
#include "problem/machine.h"
#include "problem/source.h"

namespace allranks::cli {
namespace {

int ExitCodeOf(const judge::Judgement& judgement) {
  if (judgement.verdict == judge::Verdict::kPass) return kExitPass;
  return judgement.verdict == judge::Verdict::kInternalError ? kExitInternal : kExitNoPass;
}

constexpr char kHelp[] =
    R"(Compiles the candidate with nvcc and runs it on a virtual node. Compiler and candidate run in
sandboxes. Inputs are drawn after the candidate's host code has ended. Every element of every call of
every rank is compared. Times are modelled. docs/judge.md describes the measurements and the JSON.

--trusted needs neither bubblewrap nor user namespaces. Use it for code of your own, on machines that
forbid sandboxes: the candidate runs as you. The JSON then has "trusted": true, and neither `allranks
run` nor `allranks report` accepts such a verdict. Problems with NCCL need sandboxes.

Exit codes: 0 pass; 1 any other verdict; 2 wrong usage; 70 internal error.

Environment:
  ALLRANKS_PROBLEMS  a folder that is searched for problems first
  ALLRANKS_CACHE     the cache of builds; default XDG_CACHE_HOME/allranks)";

// A seed is a line, however it was written: with or without an end.
Result<std::string> SeedFrom(const std::string& file) {
  Result<std::string> text = problem::ReadFile(file, 4096);
  if (!text) return text;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (text->empty()) return Fail("{} contains no seed: write a line of text to it", file);
  return text;
}

// Whether there is the case of --case, and whether --visible leaves it. The judge draws further
// cases itself: their names are not known before.
Status CheckCase(const problem::Problem& problem, const JudgeOptions& options) {
  const std::string& name = options.only_case;
  if (name.empty() || name.starts_with("drawn")) return Ok();
  std::vector<std::string> names;
  const problem::Case* found = nullptr;
  for (const problem::Case& one : problem.cases) {
    names.push_back(one.name);
    if (one.name == name) found = &one;
  }
  if (found == nullptr)
    return Fail("--case {}: {} has no such case{}; it has {}", name, problem.slug,
                DidYouMean(name, names), Join(names));
  if (options.visible && found->kind != problem::Case::Kind::kVisible)
    return Fail("--case {} is not a visible case: remove --visible", name);
  return Ok();
}

class JudgeCommand : public Command {
 public:
  explicit JudgeCommand(CLI::App* app);
  int Run() const override;

 private:
  JudgeOptions options_;
};

JudgeCommand::JudgeCommand(CLI::App* app) {
  command_ = app->add_subcommand("judge", "Judge a candidate's solution of a problem");
  command_->footer(kHelp);
  command_->formatter(std::make_shared<UsageFormatter>(
      "judge PROBLEM --solution FILE [OPTIONS] | judge PROBLEM --compare A B [OPTIONS]"));
  const auto option = [&](const char* name, auto& value, const char* text, const char* what) {
    return command_->add_option(name, value, what)->option_text(text);
  };
  command_->add_option("PROBLEM", options_.problem, "Its slug, or the path of its folder")
      ->required();
  option("--solution", options_.solution, "FILE",
         "The candidate: a whole file, or only the edit region")
      ->check(FilledFile());
  option("--compare", options_.compare, "A B", "Compare two candidates case by case")
      ->expected(2)
      ->check(FilledFile());
  option("--profile", options_.profile, "PROFILE [h100x8]",
         "The simulated hardware: the name of a profile, or a path");
  option("--case", options_.only_case, "NAME", "Only this case");
  command_->add_flag("--visible", options_.visible, "Only visible cases");
  option("--seed", options_.seed, "TEXT [random]",
         "Seed of the drawn inputs; the same text gives the same judgement");
  option("--seed-file", options_.seed_file, "FILE",
         "Read the seed from FILE; process lists show the arguments of a command")
      ->check(FilledFile())
      ->excludes("--seed");
  option("--problems-dir", options_.problems_dir, "DIR",
         "Folder to search for problems, instead of the installed ones")
      ->check(InputFolder());
  command_->add_flag("--json", options_.json, "Print JSON, one line per candidate");
  option("--trace", options_.trace, "FILE",
         "Write a timeline of the largest world to FILE, for ui.perfetto.dev")
      ->check(OutputFile());
  command_->add_flag("--no-cache", options_.no_cache, "Neither read nor write the cache of builds");
  command_->add_flag("--keep-going", options_.keep_going,
                     "Continue after wrong results: run every case and count the wrong calls");
  option("-j", options_.jobs, "N [1]",
         "Run up to N windows concurrently; the judgement is the same for every N")
      ->check(Whole(1, 64));
  command_->add_flag("--drawn-last", options_.drawn_last, "Run the drawn cases of all worlds last");
  option("--band", options_.band, "N [0]",
         "Also time a passing candidate and the reference on N perturbed profiles")
      ->check(Whole(0, 64));
  command_->add_flag("--no-check", options_.no_check,
                     "Compare outputs only; do not check for races and memory errors");
  option("--schedule", options_.schedule, "SEED",
         "Also run each selected case under this schedule, as named in a verdict")
      ->check(Whole(0))
      ->excludes("--no-check");
  option("--schedules", options_.schedules, "N",
         "Run each selected case under N schedules, not only some small cases")
      ->check(Whole(1, 1'000'000));
  command_->add_flag("--drain", options_.drain,
                     "Test mode: start each call when all ranks are idle");
  command_->add_flag("--trusted", options_.trusted,
                     "Judge code of your own without sandboxes; the verdict is not valid as a "
                     "result for others");
  option("--cpu-seconds", options_.cpu_s, "SECONDS [120]",
         "Limit of the CPU time of a judgement, including the compiler")
      ->check(Number(1, 3600, "seconds"));
  option("--instructions", options_.instructions, "N [24000000000]",
         "Limit of the thread-instructions of all windows of a judgement")
      ->check(Whole(1));
  option("--rank-seconds", options_.idle_s, "SECONDS [60]",
         "Limit of the time for which ranks may be idle while the judge waits for them")
      ->check(Number(1, 3600, "seconds"));
}

int JudgeCommand::Run() const {
  const JudgeOptions& options = options_;
  if (options.solution.empty() == options.compare.empty())
    return Usage("give the candidate with --solution FILE, or two with --compare A B");
  if (options.no_check && options.schedules != 0)
    return Usage("--schedules has no effect with --no-check");
  const Result<problem::Problem> problem = FindProblem(options.problem, options.problems_dir);
  if (!problem) return Usage(problem.error().message);
  Result<std::string> profile = FindProfile(options.profile);
  if (!profile) return Usage(profile.error().message);
  const Result<node::Profile> machine = node::LoadProfile(*profile);
  if (!machine) return Usage(machine.error().message);
  if (const auto there = problem::On(*problem, *machine); !there)
    return Usage(there.error().message);
  if (const Status there = CheckCase(*problem, options); !there)
    return Usage(there.error().message);
  // The node knows the library by its path in the ranks, which they share in sandboxes only.
  if (options.trusted && problem::UsesNccl(*problem))
    return Usage(
        fmt::format("--trusted: {} uses NCCL, which is judged in sandboxes only: remove "
                    "--trusted",
                    problem->slug));
  Result<judge::Tools> tools = FindTools(!options.no_cache);
  if (!tools) return Usage(tools.error().message);
  tools->idle_ms = static_cast<int>(options.idle_s * 1e3);
  tools->cpu_ms = static_cast<int>(options.cpu_s * 1e3);
  tools->work = options.instructions;
  tools->trusted = options.trusted;

  judge::Request request;
  request.problem = &*problem;
  request.profile = *profile;
  request.seed = options.seed.empty() ? RandomSeed() : options.seed;
  request.only_case = options.only_case;
  request.trace = options.trace;
  request.drain = options.drain;
  request.keep_going = options.keep_going;
  request.visible_only = options.visible;
  request.check = !options.no_check;
  request.schedule = options.schedule;
  request.schedules = options.schedules;
  request.band = options.band;
  request.drawn_last = options.drawn_last;
  request.jobs = options.jobs;
  if (!options.seed_file.empty()) {
    Result<std::string> seed = SeedFrom(options.seed_file);
    if (!seed) return Usage(seed.error().message);
    request.seed = std::move(*seed);
  }

  if (options.trusted)
    fmt::print(
        stderr,
        "allranks: --trusted: the candidate runs without a sandbox, as you; a candidate that "
        "you did not write can do whatever you can, and this verdict cannot be shown to "
        "others as a result\n");
  std::vector<std::string> files = options.compare;
  if (files.empty()) files.push_back(options.solution);
  std::vector<judge::Judgement> judgements;
  for (const std::string& file : files) {
    Result<std::string> source = problem::ReadFile(file, 64 << 20);
    if (!source) return Usage(source.error().message);
    request.source = std::move(*source);
    {
      JudgeMeter meter({.what = "judging", .unit = "cases"});
      request.listener = &meter;
      judgements.push_back(judge::Judge(*tools, request));
    }
    if (options.json) fmt::print("{}", judge::ToJson(*problem, judgements.back()));
  }
  if (!options.json) {
    fmt::print("{}", judgements.size() == 2 ? judge::ToComparison(*problem, files[0], judgements[0],
                                                                  files[1], judgements[1])
                                            : judge::ToTable(*problem, judgements[0]));
  }
  std::fflush(stdout);
  for (const judge::Judgement& judgement : judgements)
    if (const int code = ExitCodeOf(judgement); code != kExitPass) return code;
  return kExitPass;
}

}  // namespace

std::unique_ptr<Command> MakeJudgeCommand(CLI::App* app) {
  return std::make_unique<JudgeCommand>(app);
}

}  // namespace allranks::cli
