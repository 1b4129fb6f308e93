// The options of `allranks problems`, and its parts list and show.
#include "cli/problems.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/exec.h"
#include "cli/paths.h"
#include "cli/places.h"
#include "cli/usage.h"
#include "cli/values.h"
#include "problem/args.h"
#include "problem/problem.h"
#include "problem/source.h"

namespace allranks::cli {
namespace {

namespace fs = std::filesystem;
using problem::Problem;
using problem::Tensor;

constexpr const char* kHelp =
    R"(A problem is a folder CATEGORY/SLUG with a problem.toml; docs/problems.md is a tutorial.

list   slug, category, level, window, timed cases, mutants, title
show   rules, entry points, tensors and floors by case, mutants.
       With --header: the problem.h that a solution includes. With --template: the file to complete
new    creates a folder CATEGORY/SLUG with a complete small problem as a starting point
check  judges everything in a problem's folder: reference, baseline, NCCL and alternates must pass at each
       case, the untouched template must fail, controls and mutants must get their verdicts, a second
       run of the reference must be identical, and reference.lock must match. Prints one line per
       item (ok or FAIL), then the times of the reference with the roofline, then a table.
       --record writes each problem that passes all checks to checked.json in the problems folder,
       with a hash of its files and the profile, and one of the sources of node and judge. --changed
       judges only the references of problems that have passed with the same files, except on one of
       N days (--sample N); with --every that leaves out all alternates and NCCL but one, another
       one each time. With --sample 0 it skips those that have passed with the same sources, too,
       and judges all others
export writes a CUDA program for a machine with GPUs into a folder: SLUG with a solution, its oracle
       and all timed and visible cases. Its build.sh compiles the program. The solution runs there
       without isolation
release copies a tree of problems as it is given away: public problems whole, sealed ones with what
       their prompts need (no solutions, oracle, mutants), private ones not at all. --held-out copies
       the sealed and private problems whole into a second tree; whoever has it judges them with
       --problems-dir

SLUG may also be the path of a folder, with a / in it.

Exit codes: 0; 1 if a problem fails its checks (check); 2 wrong usage, or a problem that is missing or
invalid.

Environment:
  ALLRANKS_PROBLEMS  a folder that is searched for problems first

The JSON of list has the members version, problems[] (slug, category, level, library, family, title,
  split, window, folder, timed, visible, drawn, mutants) and errors[].
The JSON of check has version, problems[]: slug, ok, faults[], lock,
  mutants{written, caught, by_outputs},
  items[] (name, expected, needs_checker, verdict, lenient, findings, ok, text, score, cpu_s),
  timed[] (case, isolated_ns, call_ns, roofline_ns))";

std::size_t CasesOf(const Problem& problem, problem::Case::Kind kind) {
  return static_cast<std::size_t>(
      std::count_if(problem.cases.begin(), problem.cases.end(),
                    [&](const problem::Case& one) { return one.kind == kind; }));
}

std::string Joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

// "in", "out", "symmetric"
const char* NameOf(Tensor::Dir dir) {
  return dir == Tensor::Dir::kIn ? "in" : dir == Tensor::Dir::kOut ? "out" : "symmetric";
}

void PrintTensor(const Tensor& tensor) {
  std::string shape;
  for (const problem::Expression& extent : tensor.shape) shape += "[" + extent.text() + "]";
  if (tensor.dir == Tensor::Dir::kSymmetric) shape = "[" + tensor.bytes.text() + "]";
  std::string notes;
  if (tensor.peers) notes += " peers";
  if (tensor.multicast) notes += " multicast";
  if (tensor.host) notes += " host";
  if (tensor.changes) notes += " changes";
  fmt::print("  {:<10} {:<9} {:<5} {}{}{}\n", tensor.name, NameOf(tensor.dir),
             problem::NameOf(tensor.type), shape, notes.empty() ? "" : " :", notes);
}

void PrintCases(const Problem& problem) {
  fmt::print("cases\n");
  for (const problem::Case& one : problem.cases) {
    std::string sizes;
    for (const Tensor& tensor : problem.tensors)
      sizes += fmt::format(" {} {} B", tensor.name, problem::BytesOf(problem, tensor, one));
    const auto ingress = problem.floor.ingress.Evaluate(problem::ValuesOf(problem, one));
    fmt::print("  {:<28}{}; at least {} B must reach a rank\n", one.name, sizes,
               ingress.value_or(0));
  }
  const problem::DrawnCases& drawn = problem.drawn;
  if (drawn.count == 0) return;
  std::string ranges = fmt::format(" world {}..{}", drawn.world_low, drawn.world_high);
  for (std::size_t i = 0; i < problem.params.size(); ++i)
    ranges += fmt::format(" {} {}..{}", problem.params[i], drawn.low[i], drawn.high[i]);
  fmt::print("  {} drawn by the judge:{}{}\n", drawn.count, ranges, drawn.skew ? ", skewed" : "");
}

class ProblemsCommand : public Command {
 public:
  explicit ProblemsCommand(CLI::App* app);
  int Run() const override;

 private:
  ProblemsOptions options_;
  CLI::App* list_;
  CLI::App* show_;
  CLI::App* new_;
  CLI::App* check_;
  CLI::App* export_;
  CLI::App* release_;
};

}  // namespace

std::unique_ptr<Command> MakeProblemsCommand(CLI::App* app) {
  return std::make_unique<ProblemsCommand>(app);
}

ProblemsCommand::ProblemsCommand(CLI::App* app) {
  command_ = app->add_subcommand("problems", "List, show, create and check problems");
  command_->footer(kHelp);
  command_->formatter(std::make_shared<UsageFormatter>(
      "problems list [--category C] [--json] | show "
      "[--header|--template] SLUG | new CATEGORY/SLUG | "
      "check [OPTIONS] SLUG... | "
      "export SLUG --target hardware --solution FILE --out FOLDER | "
      "release --out FOLDER [--held-out FOLDER]"));
  command_->require_subcommand(1);
  const auto add_folder = [this](CLI::App* part, const CLI::Validator& check) {
    part->add_option("--problems-dir", options_.folder,
                     "Folder to search for problems, instead of the installed ones")
        ->option_text("FOLDER")
        ->check(check);
  };
  list_ = command_->add_subcommand("list", "List the problems");
  list_->add_option("--category", options_.category, "Only problems of this category")
      ->check(OneOf(problem::Categories()));
  list_->add_flag("--json", options_.json, "Print them as JSON");
  add_folder(list_, InputFolder());
  show_ = command_->add_subcommand("show", "Print one problem");
  show_->add_option("SLUG", options_.name, "Name or folder")->required();
  CLI::Option* header = show_->add_flag("--header", options_.header, "Print its problem.h instead");
  show_->add_flag("--template", options_.template_text, "Print its template instead")
      ->excludes(header);
  add_folder(show_, InputFolder());
  new_ = command_->add_subcommand("new", "Create a folder for a new problem");
  new_->add_option("CATEGORY/SLUG", options_.name, "Category and name of the problem")->required();
  add_folder(new_, OutputFolder());
  check_ = command_->add_subcommand("check", "Check problems");
  CLI::Option* names =
      check_->add_option("SLUG", options_.names, "Names or folders")->option_text("...");
  check_->add_flag("--all", options_.all, "All problems")->excludes(names);
  check_->add_flag("--update", options_.update,
                   "Write reference.lock instead of comparing with it");
  CLI::Option* changed = check_->add_flag(
      "--changed", options_.changed,
      "Only references of problems that have not changed since they passed (see below)");
  check_
      ->add_option("--sample", options_.sample,
                   "With --changed: judge an unchanged problem on one of N days; 0: never")
      ->check(Whole(0, 1'000'000))
      ->needs(changed);
  check_->add_flag("--record", options_.record, "Record the problems that pass in checked.json");
  check_->add_option("--every", options_.every, "Only every Nth mutant")
      ->option_text("N [1]")
      ->check(Whole(1, 1000));
  check_
      ->add_option("--only", options_.only,
                   "Only items with TEXT in their names; separate several with commas")
      ->option_text("TEXT");
  check_->add_option("--profile", options_.profile, "The simulated hardware")
      ->option_text("PROFILE [h100x8]");
  check_->add_option("-j", options_.workers, "Number of items judged concurrently")
      ->option_text("N [cores]")
      ->check(Whole(1, 256));
  check_->add_flag("--json", options_.json, "Print the result as JSON");
  add_folder(check_, InputFolder());
  export_ = command_->add_subcommand("export", "Write a program for a machine with GPUs");
  export_->add_option("SLUG", options_.name, "Name or folder")->required();
  export_->add_option("--target", options_.target, "Target of the export")
      ->option_text("hardware")
      ->check(OneOf({"hardware"}))
      ->required();
  export_->add_option("--solution", options_.solution, "The solution: a whole file or a region")
      ->option_text("FILE")
      ->check(FilledFile())
      ->required();
  export_->add_option("--out", options_.out, "A folder that does not exist yet")
      ->option_text("FOLDER")
      ->check(OutputFolder())
      ->required();
  add_folder(export_, InputFolder());
  release_ = command_->add_subcommand("release", "Copy the problems without what must stay secret");
  release_->add_option("--out", options_.out, "For what is given away; does not exist yet")
      ->option_text("FOLDER")
      ->check(OutputFolder())
      ->required();
  release_
      ->add_option("--held-out", options_.held_out,
                   "For sealed and private problems, whole; does not exist yet")
      ->option_text("FOLDER")
      ->check(OutputFolder());
  add_folder(release_, InputFolder());
}

int ProblemsCommand::Run() const {
  if (list_->parsed()) return ProblemsList(options_);
  if (show_->parsed()) return ProblemsShow(options_);
  if (check_->parsed()) return ProblemsCheck(options_);
  if (export_->parsed()) return ProblemsExport(options_);
  if (release_->parsed()) return ProblemsRelease(options_);
  return ProblemsNew(options_);
}

int ProblemsList(const ProblemsOptions& options) {
  nlohmann::json all = {
      {"version", 1}, {"problems", nlohmann::json::array()}, {"errors", nlohmann::json::array()}};
  std::vector<Problem> problems;
  bool failed = false;
  for (const std::string& root : ProblemFolders(options.folder)) {
    for (const fs::path& folder : problem::Find(root)) {
      auto variants = problem::LoadAll(folder);
      if (!variants) {
        failed = true;
        all["errors"].push_back(variants.error().message);
        if (!options.json) fmt::print(stderr, "{}\n", variants.error().message);
        continue;
      }
      if (!options.category.empty() && variants->front().category != options.category) continue;
      // The first folder that has a slug is the one it is found in.
      const bool known = std::any_of(problems.begin(), problems.end(), [&](const Problem& other) {
        return other.slug == variants->front().slug;
      });
      if (!known) std::move(variants->begin(), variants->end(), std::back_inserter(problems));
    }
  }
  std::size_t width = 4;
  for (const Problem& one : problems) width = std::max(width, one.slug.size());
  for (const Problem& one : problems) {
    const std::size_t timed = CasesOf(one, problem::Case::Kind::kTimed);
    if (!options.json) {
      fmt::print("{:<{}}  {:<10}  {:<6}  {:<6}  {:>2} timed  {:>2} mutants  {}\n", one.slug, width,
                 one.category, one.level, problem::NameOf(one.window), timed, one.mutants.size(),
                 one.title);
      continue;
    }
    all["problems"].push_back({{"slug", one.slug},
                               {"category", one.category},
                               {"level", one.level},
                               {"library", one.library},
                               {"family", one.family},
                               {"title", one.title},
                               {"split", problem::NameOf(one.split)},
                               {"window", problem::NameOf(one.window)},
                               {"folder", one.folder.string()},
                               {"timed", timed},
                               {"visible", CasesOf(one, problem::Case::Kind::kVisible)},
                               {"drawn", one.drawn.count},
                               {"mutants", one.mutants.size()}});
  }
  if (options.json) fmt::print("{}\n", all.dump(2));
  return failed ? kExitUsage : 0;
}

int ProblemsShow(const ProblemsOptions& options) {
  const auto fail = [](const std::string& message) {
    fmt::print(stderr, "allranks: {}\n", message);
    return kExitUsage;
  };
  const auto problem = FindProblem(options.name, options.folder);
  if (!problem) return fail(problem.error().message);
  if (options.header) {
    fmt::print("{}", problem::RenderHeader(*problem));
    return 0;
  }
  if (options.template_text) {
    const auto text = problem::TemplateOf(*problem);
    if (!text) return fail(text.error().message);
    fmt::print("{}", *text);
    return 0;
  }
  fmt::print("{}: {}\n", problem->slug, problem->title);
  fmt::print("{}, {}, {}, family {}, {}\n", problem->category, problem->level, problem->library,
             problem->family, problem::NameOf(problem->split));
  if (!problem->origin.empty()) fmt::print("{}\n", problem->origin);
  fmt::print("window {}, bursts of {} calls; allowed: {}; payload only over {}{}{}\n",
             problem::NameOf(problem->window), problem->burst, Joined(problem->allow),
             Joined(problem->links),
             problem->max_ctas > 0 ? fmt::format("; at most {} CTAs", problem->max_ctas) : "",
             problem->setup ? "; has a setup" : "");
  fmt::print("entry points {}\ntensors\n", Joined(problem->calls));
  for (const Tensor& tensor : problem->tensors) PrintTensor(tensor);
  PrintCases(*problem);
  fmt::print("mutants\n");
  for (const problem::Mutant& mutant : problem->mutants) {
    fmt::print("  {:<28} {}{}\n", mutant.name, mutant.verdict,
               mutant.needs_checker ? " (by the checker)" : "");
  }
  return 0;
}

}  // namespace allranks::cli
