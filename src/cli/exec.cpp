// `allranks exec`: one run or several, and what is said of them. supervisor.cpp has the run itself.
#include "cli/exec.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "cli/say.h"
#include "cli/schedules.h"
#include "cli/stats.h"
#include "cli/version.h"

namespace allranks::cli {

namespace {

bool WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) Say("cannot write {}", path);
  return static_cast<bool>(file);
}

// What was looked at, for the last line.
std::string Checked(const std::string& stats, const SchedulesRun& more) {
  std::string text = CheckedIn(stats);
  if (!RefusedIn(stats).empty()) text += ", others did not run";
  if (!more.schedules.empty())
    text += fmt::format(", schedule 0 and {} others", more.schedules.size());
  return text;
}

std::string FileText(const ExecOptions& options, const FindingRun& run,
                     const std::vector<ListedFinding>& findings, const std::string& printed) {
  switch (options.format.value_or(FormatOfFile(options.findings))) {
    case FindingFormat::kText:
      return printed;
    case FindingFormat::kJson:
      return FindingsAsJson(run, findings);
    case FindingFormat::kSarif:
      return FindingsAsSarif(run, findings);
    case FindingFormat::kJunit:
      return FindingsAsJunit(run, findings);
  }
  return printed;
}

}  // namespace

int Exec(const ExecOptions& options) {
  Result<FindingList> list = FindingList::Make(options.listing);
  if (!list) {
    Say("{}", list.error().message);
    return kExitUsage;
  }
  const RunOutcome run = RunOnce(options, false);
  if (run.refused) return *run.refused;
  if (options.stats && !run.stats_json.empty())
    std::fputs(StatsTable(run.stats_json).c_str(), stderr);
  if (!run.stats_json.empty() && !options.stats_json.empty() &&
      !WriteFile(options.stats_json, Indented(run.stats_json)))
    return kExitInternal;
  list->Add(run.findings);
  int code = run.timeout     ? kExitTimeout
             : run.node_lost ? kExitInternal
             : run.deadlock  ? kExitDeadlock
                             : run.code;
  if (code == 0 && !RefusedIn(run.stats_json).empty()) {
    Say("the program exited with 0, but kernels of it could not be loaded");
    code = kExitNotLoaded;
  }
  if (!options.check || (run.node_lost && !run.timeout)) return code;
  const int own = code;
  SchedulesRun more;
  const bool started = code != kExitCannotRun && code != kExitNotFound;
  if (options.schedules > 0 && !run.deadlock && !run.timeout && !run.stopped && started) {
    more = RunSchedules(options, run, &*list);
    if (code == 0 && !more.failures.empty()) code = more.failures.front().code;
  }
  const std::string text = list->Text(Checked(run.stats_json, more));
  std::fputs(text.c_str(), stderr);
  FindingRun checked{options.command, more.schedules, more.failures, code, Version()};
  checked.schedules.insert(checked.schedules.begin(), options.schedule);
  if (own != 0)
    checked.failures.insert(
        checked.failures.begin(),
        {options.schedule, own,
         own == kExitNotLoaded ? "kernels of the program could not be loaded" : run.deadlock_text});
  const std::size_t counted = list->counted();
  if (checked.code == 0 && counted != 0) checked.code = kExitFindings;
  if (!options.findings.empty() &&
      !WriteFile(options.findings, FileText(options, checked, list->Listed(), text)))
    return kExitInternal;
  // Neither hides the other.
  if (counted != 0 && code != 0 && !run.deadlock && !run.timeout)
    Say("the program also exited with code {}", code);
  return checked.code;
}

}  // namespace allranks::cli
