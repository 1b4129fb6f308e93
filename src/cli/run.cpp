#include "cli/run.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/files.h"
#include "campaign/campaign.h"
#include "cli/exec.h"
#include "cli/judge_tools.h"
#include "cli/paths.h"
#include "cli/places.h"
#include "cli/progress.h"
#include "cli/select.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "cli/values.h"
#include "cli/version.h"
#include "judge/build.h"
#include "judge/sandbox.h"
#include "report/summary.h"
#include "report/table.h"

namespace allranks::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kExitUnfinished = 1, kExitStopped = 130;

constexpr char kHelp[] =
    R"(Asks every model to solve every problem K times. Each sample has up to R rounds; later rounds give
the model the output of the compiler or the judge for open cases, or the times of its solution.
Replies are judged while other requests are in progress. docs/campaigns.md describes the folder that
a run writes. `allranks report OUT` computes scores and writes a page.

The same command continues a run that has ended for any reason. It repeats neither existing replies
nor existing judgements. It may name more models, problems, samples or rounds than before.

Problems are slugs, paths, all, or selectors: category:C, level:L, library:L, family:F, parallelism:P.
A comma adds problems, a + between selectors requires both: parallelism:tp+level:hard,flag_pingpong.

Models are names from models.toml (docs/models.md), or oracle, nop, material:KIND, replay:FOLDER,
command:LINE. NAME=MODEL gives a model another name. After command: a comma is part of the line; use
a second --models for another model.

Exit codes: 0 all samples are finished; 1 some are not; 2 wrong usage; 70 internal error; 130 stopped
by Ctrl-C or SIGTERM (a second one stops immediately).

Environment:
  the variables that models.toml names for keys
  ALLRANKS_MODELS    the only models.toml to read, instead of ./models.toml and the installed one
  NO_COLOR           disables colours
  ALLRANKS_PROBLEMS  a folder that is searched for problems first
  ALLRANKS_CACHE     the cache of builds; default XDG_CACHE_HOME/allranks

The JSON of a run has the members version, out, finished, unfinished, stopped, out_of_money, broken,
  dollars, perhaps_dollars (upper bound for interrupted requests), why[] (model, problem, sample, why)
  and models[] (model, finished, unfinished, pass_at_1, pass_within, dollars); unknown values are
  null. Rates are those of the report: means over problems, without the samples that it excludes. The
  JSON of --dry-run has version, done and models[] (model, generations, input_tokens, output_tokens,
  dollars, price_known).)";

struct RunOptions {
  std::vector<std::string> models, problems;
  int samples = 1, rounds = 1, jobs = 0, band = 0, few_shot = 0;
  std::optional<double> temperature;
  std::string out, prompt = "default", profile = "h100x8", seed, models_file, problems_dir;
  double budget = std::numeric_limits<double>::infinity(), target = 0.9;
  bool trace = false, dry_run = false, json = false, quiet = false;
};

class RunCommand : public Command {
 public:
  explicit RunCommand(CLI::App* app);
  int Run() const override;

 private:
  Result<campaign::Plan> MakePlan() const;
  Status SetTemperature(campaign::Plan* plan) const;
  Status AddExamples(campaign::Plan* plan) const;
  int DryRun(const campaign::Plan& plan) const;
  void PrintEnding(const campaign::Ending& ending, const campaign::Run& run) const;

  RunOptions options_;
};

RunCommand::RunCommand(CLI::App* app) {
  command_ = app->add_subcommand("run", "Ask models to solve problems, and judge their solutions");
  command_->footer(kHelp);
  command_->formatter(std::make_shared<UsageFormatter>(
      "run --models A,B --problems X,Y|all --out FOLDER [OPTIONS]"));
  const auto option = [&](const char* name, auto& value, const char* text, const char* what) {
    return command_->add_option(name, value, what)->option_text(text);
  };
  option("--models", options_.models, "A,B", "The models to ask")->required();
  option("--problems", options_.problems, "X,Y|all|KIND:VALUE", "The problems to solve")
      ->required();
  option("--out", options_.out, "FOLDER", "The folder of the run; an existing run continues")
      ->check(OutputFolder())
      ->required();
  option("--samples", options_.samples, "K [1]", "Samples of each model for each problem")
      ->check(Whole(1, campaign::kMostSamples));
  option("--rounds", options_.rounds, "R [1]", "Maximum number of rounds of a sample")
      ->check(Whole(1, campaign::kMostRounds));
  option("--prompt", options_.prompt, "NAME|FILE [default]",
         "The prompt template; `allranks prompt` prints the prompt");
  option("--temperature", options_.temperature, "T [each model's own]",
         "Temperature of all requests; refused for models that accept none")
      ->check(Number(0, 2));
  option("--few-shot", options_.few_shot, "N [0]",
         "Put N solved examples, other problems with their references, before each task")
      ->check(Whole(0, kMostExamples));
  option("--profile", options_.profile, "PROFILE [h100x8]",
         "The simulated hardware: the name of a profile, or a path");
  option("--budget", options_.budget, "DOLLARS",
         "Send no more requests when all processes of the run together have spent this")
      ->check(Number(0, std::numeric_limits<double>::infinity(), "dollars"));
  option("-j", options_.jobs, "N [cores]", "Number of concurrent judgements")
      ->check(Whole(1, 1024));
  option("--band", options_.band, "N [0]",
         "Number of perturbed profiles on which a passing solution is timed again")
      ->check(Whole(0, 64));
  option("--target", options_.target, "F [0.9]",
         "Fraction of the roofline from which on no improvement is requested")
      ->check(Number(0, 1));
  command_->add_flag("--trace", options_.trace,
                     "Keep a trace of each judgement, for ui.perfetto.dev");
  option("--seed", options_.seed, "TEXT [random]", "Seed of the drawn inputs; stored in run.json");
  option("--models-file", options_.models_file, "FILE", "The only models.toml to read")
      ->check(InputFile());
  option("--problems-dir", options_.problems_dir, "DIR",
         "Folder to search for problems, instead of the installed ones")
      ->check(InputFolder());
  command_->add_flag("--dry-run", options_.dry_run,
                     "Print the number of requests and an estimate of the cost; send nothing");
  command_->add_flag("--json", options_.json, "Print the result as JSON");
  command_->add_flag("--quiet", options_.quiet, "Print errors only, no progress");
}

Status RunCommand::SetTemperature(campaign::Plan* plan) const {
  if (!options_.temperature) return Ok();
  bool sent = false;
  for (model::Entry& entry : plan->models) {
    if (!model::IsHttp(entry.protocol)) continue;
    sent = true;
    entry.parameters.temperature = options_.temperature;
    if (const std::string why = model::TemperatureFault(entry); !why.empty())
      return Fail("--temperature {}: {}: {}; remove --temperature, or run this model separately",
                  *options_.temperature, entry.name, why);
  }
  if (!sent)
    return Fail("--temperature {}: no model of --models takes one: remove it",
                *options_.temperature);
  plan->temperature = options_.temperature;
  return Ok();
}

Status RunCommand::AddExamples(campaign::Plan* plan) const {
  plan->few_shot = options_.few_shot;
  if (options_.few_shot == 0) return Ok();
  const Result<std::vector<problem::Problem>> all = AllProblems(options_.problems_dir);
  if (!all) return Fail(all.error());
  for (const problem::Problem& problem : plan->problems) {
    Result<std::vector<problem::Example>> examples =
        problem::ChooseExamples(problem, *all, options_.few_shot);
    if (!examples) return Fail("--few-shot {}: {}", options_.few_shot, examples.error().message);
    plan->examples[problem.slug] = std::move(*examples);
  }
  return Ok();
}

Result<campaign::Plan> RunCommand::MakePlan() const {
  campaign::Plan plan;
  plan.out = std::filesystem::absolute(options_.out).lexically_normal();
  if (!plan.out.has_filename()) plan.out = plan.out.parent_path();  // "runs/first/"
  Result<std::vector<model::Entry>> models = SelectModels(options_.models, options_.models_file);
  if (!models) return Fail(models.error());
  plan.models = std::move(*models);
  for (const model::Entry& entry : plan.models)
    if (std::isfinite(options_.budget) && model::IsHttp(entry.protocol) && !entry.price.known)
      return Fail(
          "{} has no price, so --budget has no effect: set a price in models.toml "
          "(docs/models.md; 0 for your own server), or remove --budget",
          entry.name);
  Result<std::vector<problem::Problem>> problems =
      SelectProblems(options_.problems, options_.problems_dir);
  if (!problems) return Fail(problems.error());
  plan.problems = std::move(*problems);
  if (const Status set = SetTemperature(&plan); !set) return Fail(set.error());
  if (const Status added = AddExamples(&plan); !added) return Fail(added.error());
  plan.samples = options_.samples;
  plan.rounds = options_.rounds;
  plan.prompt_folder = ShareFolder() + "/prompts";
  if (const Status there = CheckPrompt(options_.prompt); !there) return Fail(there.error());
  Result<problem::PromptTemplate> prompt = problem::LoadPrompt(options_.prompt, plan.prompt_folder);
  if (!prompt) return Fail(prompt.error());
  plan.prompt = std::move(*prompt);
  Result<std::string> profile = FindProfile(options_.profile);
  if (!profile) return Fail(profile.error());
  plan.profile = std::filesystem::absolute(*profile).string();
  Result<judge::Tools> tools = FindTools(true);
  if (!tools) return Fail(tools.error());
  plan.tools = std::move(*tools);
  // Replies that cannot be judged are not paid for.
  if (const Result<std::string> cuda = judge::CudaVersion(plan.tools); !cuda)
    return Fail(cuda.error());
  if (const std::string& missing = judge::Means().missing; !missing.empty())
    return Fail("{}", missing);
  plan.version = Version();
  for (const std::string& root : ProblemFolders(options_.problems_dir))
    plan.problem_roots.emplace_back(root);
  plan.seed = options_.seed;
  plan.budget = options_.budget;
  plan.band = options_.band;
  plan.target = options_.target;
  plan.trace = options_.trace;
  return plan;
}

std::string Dollars(double dollars) { return fmt::format("${:.2f}", dollars); }

std::string Thousands(double count) {
  return count < 10'000 ? fmt::format("{:.0f}", count) : fmt::format("{:.1f}k", count / 1e3);
}

int RunCommand::DryRun(const campaign::Plan& plan) const {
  const Result<campaign::Estimate> estimate = campaign::Foresee(plan);
  if (!estimate) return Usage(report::Clean(estimate.error().message));
  if (options_.json) {
    Json rows = Json::array();
    for (const auto& row : estimate->rows)
      rows.push_back({{"model", row.model},
                      {"generations", row.generations},
                      {"input_tokens", row.input_tokens},
                      {"output_tokens", row.output_tokens},
                      {"dollars", row.price_known ? Json(row.dollars) : Json(nullptr)},
                      {"price_known", row.price_known}});
    const Json json = {{"version", 1}, {"done", estimate->done}, {"models", std::move(rows)}};
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  report::TextTable table;
  table.left = "a";
  table.rows.push_back({"model", "requests at most", "input tokens, about", "output tokens at most",
                        "dollars, about"});
  double dollars = 0;
  bool known = true;
  for (const auto& row : estimate->rows) {
    table.rows.push_back({report::Shown(row.model, 60), std::to_string(row.generations),
                          Thousands(row.input_tokens), Thousands(row.output_tokens),
                          row.price_known ? Dollars(row.dollars) : "price unknown"});
    dollars += row.dollars;
    known = known && row.price_known;
  }
  fmt::print("{}", report::Render(table));
  fmt::print(
      "{} of {} samples exist. Cost: about {}{} if every sample uses all rounds and every reply "
      "reaches its token limit. Nothing was sent.\n",
      estimate->done,
      plan.models.size() * plan.problems.size() * static_cast<std::size_t>(plan.samples),
      Dollars(dollars), known ? "" : ", plus the cost of models without a price,");
  return 0;
}

// One model in the table at the end: the report's own figures.
struct Row {
  std::string model;
  int finished = 0, unfinished = 0;
  std::optional<double> first, within;  // rates; nothing counts: none
  std::optional<double> dollars;        // not known without a price
};

std::vector<Row> RowsOf(const campaign::Run& run) {
  report::Options options;
  options.resamples = 0;  // no intervals
  const Result<report::Summary> summary = report::Summarise({run}, options);
  std::vector<Row> rows;
  for (const campaign::ModelFacts& facts : run.settings.models) {
    Row row;
    row.model = facts.name;
    double dollars = 0;
    for (const campaign::Sample& sample : run.samples) {
      if (sample.model != facts.name) continue;
      ++row.finished;
      for (const campaign::Round& round : sample.rounds) dollars += round.dollars;
    }
    for (const campaign::Unfinished& one : run.unfinished)
      row.unfinished += one.model == facts.name ? 1 : 0;
    const bool free = facts.protocol == model::NameOf(model::Protocol::kReplay) ||
                      facts.protocol == model::NameOf(model::Protocol::kMaterial);
    if (free || facts.price_known || dollars > 0) row.dollars = dollars;
    if (summary) {
      for (const report::ModelSummary& model : summary->models) {
        if (model.facts.name != facts.name || model.all.problems == 0) continue;
        row.first = model.all.strict_pass.value;
        row.within = model.all.pass_within.value;
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void RunCommand::PrintEnding(const campaign::Ending& ending, const campaign::Run& run) const {
  const std::vector<Row> rows = RowsOf(run);
  if (options_.json) {
    Json models = Json::array(), why = Json::array();
    for (const Row& row : rows) {
      const auto known = [](const std::optional<double>& value) {
        return value ? Json(*value) : Json(nullptr);
      };
      models.push_back({{"model", row.model},
                        {"finished", row.finished},
                        {"unfinished", row.unfinished},
                        {"pass_at_1", known(row.first)},
                        {"pass_within", known(row.within)},
                        {"dollars", known(row.dollars)}});
    }
    for (const campaign::Unfinished& one : ending.why)
      why.push_back({{"model", one.model},
                     {"problem", one.problem},
                     {"sample", one.sample},
                     {"why", one.why}});
    const Json json = {{"version", 1},
                       {"out", run.folder.string()},
                       {"finished", ending.finished},
                       {"unfinished", ending.unfinished},
                       {"stopped", ending.stopped},
                       {"out_of_money", ending.out_of_money},
                       {"broken", ending.broken},
                       {"dollars", ending.dollars},
                       {"perhaps_dollars", ending.perhaps_dollars},
                       {"why", std::move(why)},
                       {"models", std::move(models)}};
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  report::TextTable table;
  table.left = "a";
  table.rows.push_back({"model", "finished", "strict pass@1",
                        fmt::format("pass within {}", run.settings.rounds), "dollars"});
  for (const Row& row : rows) {
    const auto rate = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.1f} %", 100 * *value) : std::string("-");
    };
    table.rows.push_back({report::Shown(row.model, 60),
                          fmt::format("{} of {}", row.finished, row.finished + row.unfinished),
                          rate(row.first), rate(row.within),
                          row.dollars ? Dollars(*row.dollars) : "-"});
  }
  fmt::print("{}", report::Render(table));
  fmt::print("{} in total{}. `allranks report {}` computes scores and plots and writes a page.\n",
             Dollars(ending.dollars),
             ending.perhaps_dollars > 0
                 ? fmt::format(", and up to {} that may have been charged for interrupted requests",
                               Dollars(ending.perhaps_dollars))
                 : "",
             Quoted(options_.out));
}

Stop* stop_of_signals = nullptr;

// The first signal is a wish; the handler is gone then, so the second one ends the process, and
// with it all judgements.
void StopOnSignals(Stop* stop) {
  stop_of_signals = stop;
  struct sigaction action{};
  action.sa_handler = [](int) { stop_of_signals->Request(); };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

// This process's own command, as a shell takes it; with another --budget, if that is to change.
std::string OwnCommand(const std::optional<double>& budget) {
  const Result<std::string> words = ReadWhole("/proc/self/cmdline");
  if (!words) return "the same command";
  std::string command;
  bool replaced = false;  // the value of --budget comes next
  for (std::size_t at = 0; at < words->size();) {
    const std::size_t end = std::min(words->find('\0', at), words->size());
    std::string word = words->substr(at, end - at);
    if (std::exchange(replaced, false)) word = fmt::format("{:.2f}", *budget);
    replaced = budget && word == "--budget";
    if (budget && word.starts_with("--budget=")) word = fmt::format("--budget={:.2f}", *budget);
    command += (command.empty() ? "" : " ") + Quoted(word);
    at = end + 1;
  }
  return command;
}

// Enough for as much again, and for the reply that did not fit.
double LargerBudget(double budget, const campaign::Ending& ending) {
  const double spent = ending.dollars + ending.perhaps_dollars;
  const double larger = std::max({2 * budget, 1.0, spent + ending.refused_dollars});
  return std::ceil(larger * 100) / 100;
}

int RunCommand::Run() const {
  const Result<campaign::Plan> plan = MakePlan();
  if (!plan) return Usage(plan.error().message);
  if (options_.dry_run) return DryRun(*plan);

  // Every connection and every judgement needs a few.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  std::vector<std::string> secrets;
  for (const model::Entry& entry : plan->models) secrets.push_back(entry.key_variable);
  static Stop stop;
  StopOnSignals(&stop);
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::unique_ptr<campaign::Executor> executor = campaign::MakeLocalExecutor(
      plan->tools.allranks, options_.jobs > 0 ? options_.jobs : cores, std::move(secrets));
  const bool terminal = IsTerminal(STDERR_FILENO);
  using Style = Progress::Style;
  const char* no_colour = std::getenv("NO_COLOR");
  Result<campaign::Ending> ending = Fail("");
  {
    Progress progress(options_.quiet ? Style::kQuiet
                      : terminal     ? Style::kTerminal
                                     : Style::kLines,
                      terminal && (no_colour == nullptr || *no_colour == '\0'), plan->budget);
    ending = campaign::Execute(*plan, executor.get(), stop, &progress);
  }
  if (!ending) return Usage(report::Clean(ending.error().message));
  const Result<campaign::Run> run = campaign::LoadRun(plan->out);
  if (!run) {
    fmt::print(stderr, "allranks: {}\n", run.error().message);
    return kExitInternal;
  }
  PrintEnding(*ending, *run);
  std::fflush(stdout);
  if (ending->unfinished == 0) return 0;
  if (!ending->broken.empty()) fmt::print(stderr, "allranks: {}\n", report::Clean(ending->broken));
  std::optional<double> budget;
  if (ending->out_of_money) {
    budget = LargerBudget(plan->budget, *ending);
    fmt::print(stderr, "The budget of {} has no room for the next reply ({} are spent).\n",
               Dollars(plan->budget), Dollars(ending->dollars + ending->perhaps_dollars));
  }
  fmt::print(stderr, "{} of {} samples are not finished. To continue{}:\n  {}\n",
             ending->unfinished, ending->finished + ending->unfinished,
             budget ? ", with a larger budget" : "", OwnCommand(budget));
  if (ending->stopped) return kExitStopped;
  return ending->broken.empty() ? kExitUnfinished : kExitInternal;
}

}  // namespace

std::unique_ptr<Command> MakeRunCommand(CLI::App* app) { return std::make_unique<RunCommand>(app); }

}  // namespace allranks::cli
