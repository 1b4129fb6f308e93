#include "cli/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/usage.h"
#include "report/compare.h"

namespace allranks::cli {
namespace {

constexpr char kHelp[] =
    R"(Compares models of the same name, or the only model of each run, or the two models of --models.
RUN_A and RUN_B may be the same folder. Problems are paired. Intervals of the differences (B - A) are
95 % intervals and treat problems of one family as dependent. docs/scores.md has the formulas.

Exit codes: 0 compared, whatever the result; 2 wrong usage, a folder that is not a run
folder, or runs without a common problem.)";

class CompareCommand : public Command {
 public:
  explicit CompareCommand(CLI::App* app);
  int Run() const override;

 private:
  std::string a_, b_;
  std::vector<std::string> models_;
  bool json_ = false;
};

CompareCommand::CompareCommand(CLI::App* app) {
  command_ = app->add_subcommand("compare", "Compare two runs, problem by problem");
  command_->footer(kHelp);
  command_->formatter(
      std::make_shared<UsageFormatter>("compare RUN_A RUN_B [--models A B] [--json]"));
  command_->add_option("RUN_A", a_, "A run folder")->required();
  command_->add_option("RUN_B", b_, "Another run folder, or the same one")->required();
  command_->add_option("--models", models_, "The model of RUN_A and the model of RUN_B")
      ->option_text("A B")
      ->expected(2);
  command_->add_flag("--json", json_, "Print JSON");
}

int CompareCommand::Run() const {
  const Result<campaign::Run> a = campaign::LoadRun(a_), b = campaign::LoadRun(b_);
  for (const auto* run : {&a, &b})
    if (!*run) return Usage(run->error().message);
  const auto& mine = a->settings.problems;
  const bool common = std::any_of(mine.begin(), mine.end(), [&](const auto& problem) {
    const auto& theirs = b->settings.problems;
    return std::any_of(theirs.begin(), theirs.end(),
                       [&](const auto& other) { return other.slug == problem.slug; });
  });
  if (!common)
    return Usage(fmt::format("{} and {} have no problem in common: nothing can be paired", a_, b_));
  const Result<report::Comparison> comparison = report::Compare(*a, *b, models_, {});
  if (!comparison) return Usage(comparison.error().message);
  fmt::print("{}", json_ ? report::ToJson(*comparison) : report::ToTable(*comparison));
  std::fflush(stdout);
  return 0;
}

}  // namespace

std::unique_ptr<Command> MakeCompareCommand(CLI::App* app) {
  return std::make_unique<CompareCommand>(app);
}

}  // namespace allranks::cli
