#include "cli/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/words.h"
#include "campaign/record.h"
#include "cli/exec.h"
#include "cli/meter.h"
#include "cli/paths.h"
#include "cli/places.h"
#include "cli/usage.h"
#include "node/hardware/profile.h"
#include "report/report.h"

namespace allranks::cli {
namespace {

constexpr char kHelp[] =
    R"(Reads the folders of runs, finished or not, and writes to DIR:
  index.html                            the leaderboard and all details, in one file
  summary.json, models.csv, problems.csv, cases.csv
  plots/                                SVG and PNG files, with the gnuplot script that draws them
Several runs share one leaderboard. docs/report.md describes the files, docs/scores.md the figures.

Exit codes: 0 written; 2 wrong usage; 70 internal error.)";

class ReportCommand : public Command {
 public:
  explicit ReportCommand(CLI::App* app);
  int Run() const override;

 private:
  std::vector<std::string> runs_, panel_;
  std::string out_, title_;
  bool no_plots_ = false, json_ = false, private_ = false;
};

ReportCommand::ReportCommand(CLI::App* app) {
  command_ = app->add_subcommand("report", "Compute scores, plots and a page from runs");
  command_->footer(kHelp);
  command_->formatter(std::make_shared<UsageFormatter>("report RUN... [OPTIONS]"));
  command_->add_option("RUN", runs_, "Folders that `allranks run` wrote")->required();
  command_->add_option("--out", out_, "Where to write")
      ->option_text("DIR [RUN/report]")
      ->check(OutputFolder());
  command_->add_option("--title", title_, "The page's title")->option_text("TEXT [AllRanks]");
  command_
      ->add_option("--panel", panel_, "Models whose pass rates define the difficulty of a problem")
      ->option_text("MODEL,... [all]")
      ->delimiter(',');
  command_->add_flag("--private", private_,
                     "Include the texts of sealed and private problems in the page");
  command_->add_flag("--no-plots", no_plots_, "Do not draw plots");
  command_->add_flag("--json", json_, "Print summary.json instead of the leaderboard");
}

int ReportCommand::Run() const {
  report::Options options;
  if (!title_.empty()) options.title = title_;
  options.panel = panel_;
  options.private_texts = private_;
  std::vector<campaign::Run> runs;
  std::set<std::filesystem::path> places;
  std::optional<Meter> meter;
  meter.emplace(Meter::Form{.what = "writing the report", .unit = "steps"});
  meter->AddTotal(static_cast<int>(runs_.size()) + report::kSteps);
  const auto refuse = [&](const std::string& why) {
    meter.reset();  // its line is erased before anything else is printed
    return Usage(why);
  };
  for (const std::string& folder : runs_) {
    meter->Now("reading " + folder);
    std::error_code error;
    if (!places.insert(std::filesystem::canonical(folder, error)).second)
      return refuse(fmt::format("{} is given twice: its samples would count twice", folder));
    Result<campaign::Run> run = campaign::LoadRun(folder);
    if (!run) return refuse(run.error().message);
    // What is known of a profile's times; one that is no longer there has nothing said of it.
    const std::string& profile = run->settings.profile;
    if (const Result<std::string> path = FindProfile(profile))
      if (const Result<node::Profile> found = node::LoadProfile(*path))
        options.validated[profile] = found->validated;
    runs.push_back(std::move(*run));
    meter->Done("");
  }
  for (const std::string& name : panel_) {
    std::vector<std::string> known;
    for (const campaign::Run& run : runs)
      for (const campaign::ModelFacts& model : run.settings.models) {
        known.push_back(model.name);
        known.push_back(fmt::format("{} ({})", model.name, run.settings.name));
      }
    if (std::find(known.begin(), known.end(), name) == known.end())
      return refuse(fmt::format("--panel {}: no run has this model{}; the models are {}", name,
                                DidYouMean(name, known), Join(known)));
  }
  if (out_.empty() && runs_.size() > 1) return refuse("several runs need --out DIR");
  const std::filesystem::path out =
      out_.empty() ? std::filesystem::path(runs_[0]) / "report" : std::filesystem::path(out_);
  // Files are replaced whole; a folder cannot be.
  for (const char* file : {"index.html", "summary.json", "models.csv", "problems.csv", "cases.csv"})
    if (std::error_code error; std::filesystem::is_directory(out / file, error))
      return refuse(fmt::format("{} is a folder, not a file: remove it, or choose another --out",
                                (out / file).string()));
  bool first = true;
  options.on_step = [&](const std::string& what) {
    if (!std::exchange(first, false)) meter->Done("");
    meter->Now(what);
  };
  const Result<report::Written> written = report::WriteReport(runs, options, out, !no_plots_);
  meter.reset();
  if (!written) {
    fmt::print(stderr, "allranks: {}\n", written.error().message);
    return kExitInternal;
  }
  fmt::print("{}", json_ ? report::ToJson(written->summary) : report::ToTable(written->summary));
  std::fflush(stdout);
  if (!no_plots_ && !written->no_plots.empty())
    fmt::print(stderr, "allranks: no plots: {}\n", written->no_plots);
  fmt::print(json_ ? stderr : stdout, "{}{}\n", json_ ? "allranks: " : "\n",
             written->page.string());
  return 0;
}

}  // namespace

std::unique_ptr<Command> MakeReportCommand(CLI::App* app) {
  return std::make_unique<ReportCommand>(app);
}

}  // namespace allranks::cli
