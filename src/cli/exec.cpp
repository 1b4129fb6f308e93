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

namespace allranks::cli {

namespace {

bool WriteJson(const std::string& path, const std::string& text) {
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
      !WriteJson(options.stats_json, Indented(run.stats_json)))
    return kExitInternal;
  list->Add(run.findings);
  int code = run.node_lost ? kExitInternal : run.deadlock ? kExitDeadlock : run.code;
  if (code == 0 && !RefusedIn(run.stats_json).empty()) {
    Say("the program exited with 0, but kernels of it could not be loaded");
    code = kExitNotLoaded;
  }
  if (!options.check || run.node_lost) return code;
  SchedulesRun more;
  const bool started = code != kExitCannotRun && code != kExitNotFound;
  if (options.schedules > 0 && !run.deadlock && started) {
    more = RunSchedules(options, run, &*list);
    if (code == 0 && !more.failures.empty()) code = more.failures.front().code;
  }
  std::fputs(list->Text(Checked(run.stats_json, more)).c_str(), stderr);
  std::vector<std::uint64_t> schedules = more.schedules;
  schedules.insert(schedules.begin(), options.schedule);
  std::vector<FindingList::Failure> failures = more.failures;
  if (run.deadlock || run.code != 0)
    failures.insert(failures.begin(),
                    {options.schedule, run.deadlock ? kExitDeadlock : run.code, ""});
  if (!options.findings.empty() && !WriteJson(options.findings, list->Json(schedules, failures)))
    return kExitInternal;
  if (list->counted() == 0) return code;
  // Neither hides the other.
  if (code != 0 && !run.deadlock) Say("the program also exited with code {}", code);
  return code == 0 ? kExitFindings : code;
}

}  // namespace allranks::cli
