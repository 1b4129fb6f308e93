// What is claimed of the checker, shown: `checking alarms` (nothing is found in what is right),
// `checking exact` (findings are the same in every run), `checking cost` (time and memory, on
// against off). Each fails if the claim does not hold. docs/checker.md has the figures.
#include <CLI/CLI.hpp>
#include <string>

#include "checking/alarms.h"
#include "checking/cost.h"
#include "common/run.h"

int main(int argc, char** argv) {
  using namespace allranks::checking;
  CLI::App app("Verifies the claims about the checker.", "checking");
  app.require_subcommand(1);

  Choice choice;
  const auto common = [&](CLI::App* command) {
    command->add_option("--command", choice.command, "The allranks command to check");
    command->add_option("--folder", choice.folder, "Folder for the results, by build");
    command->add_flag("--resume", choice.resume, "Skip what this build has already done");
    command->add_flag("--write", choice.write, "Write the table of docs/checker.md");
    command->add_option("--only", choice.only, "Only items whose names contain one of these");
    command->add_flag("--all-cases", choice.all_cases,
                      "All visible cases of each problem, not only one");
  };
  CLI::App* alarms = app.add_subcommand("alarms", "Check that correct programs have no findings");
  alarms->add_option("--seeds", choice.seeds, "Run schedules 0 to N of each item")
      ->check(CLI::Range(0, 1'000'000));
  alarms->add_flag("--each", choice.each,
                   "Run all schedules for each run of a program; otherwise the runs share them");
  alarms->add_option("--every", choice.every, "Only every K-th item")->check(CLI::Range(1, 10'000));
  alarms->add_option("--part", choice.part, "With --every: index of the first item, from 0")
      ->check(CLI::Range(0, 9'999));
  alarms->add_option("-j,--jobs", choice.jobs, "Number of concurrent runs")
      ->check(CLI::Range(1, 256));
  common(alarms);

  int runs = 20;
  CLI::App* exact = app.add_subcommand("exact", "Check that findings are the same in every run");
  exact->add_option("--runs", runs, "Number of runs, without load and again with load")
      ->check(CLI::Range(1, 1000));
  common(exact);

  int repeat = 5, each = 5;
  double most = 4, least = 75;
  CLI::App* cost =
      app.add_subcommand("cost", "Measure time and memory with and without the checker");
  cost->add_option("--repeat", repeat, "Processes of each kind; the fastest counts")
      ->check(CLI::Range(1, 100));
  cost->add_option("--runs", each, "Runs in each process")->check(CLI::Range(1, 1000));
  cost->add_option("--most", most, "Maximum ratio to the CPU time without the checker");
  cost->add_option("--least", least, "Minimum of million thread instructions per second");
  CLI11_PARSE(app, argc, argv);

  if (cost->parsed()) return Cost(repeat, each, most, least);
  const allranks::tools::Scratch scratch("checking");
  return alarms->parsed() ? Alarms(scratch.path(), choice) : Exact(scratch.path(), choice, runs);
}
