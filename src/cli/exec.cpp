// `allranks exec`: one run or several, and what is said of them. supervisor.cpp has the run itself.
#include "cli/exec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "cli/say.h"
#include "cli/schedules.h"
#include "cli/stats.h"
#include "cli/version.h"
#include "node/status.h"

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

constexpr std::size_t kMostFaults = 10;  // that are printed

// Whether the finding is of the access that has stopped the kernel: findings of these kinds come
// with these statuses, and both name the kernel and the line.
bool Explains(const node::Finding& finding, const Failed& fault) {
  using Kind = node::Finding::Kind;
  using node::Status;
  const auto stops = [&](Status status) { return fault.status == static_cast<int>(status); };
  switch (finding.kind) {
    case Kind::kOutOfBounds:
    case Kind::kUseAfterFree:
    case Kind::kNotMapped:
      if (!stops(Status::kIllegalAddress)) return false;
      break;
    case Kind::kMisaligned:
      if (!stops(Status::kMisalignedAddress)) return false;
      break;
    case Kind::kBarrier:
    case Kind::kMbarrier:
      if (!stops(Status::kIllegalInstruction)) return false;
      break;
    default:
      return false;
  }
  const node::FindingAccess& access = finding.accesses.front();
  std::string place;
  if (!access.file.empty()) place = fmt::format(", {}:{}", access.file, access.line);
  if (!access.inlined_at.empty()) place += fmt::format(" (inlined at {})", access.inlined_at);
  return fault.message.find(fmt::format(" in kernel {}, block (", access.kernel)) !=
             std::string::npos &&
         fault.message.ends_with(place);
}

// Those of which no finding that counts says more.
std::vector<std::string> UnexplainedFaults(const RunOutcome& run, const FindingList& list) {
  std::vector<std::string> faults;
  for (const Failed& fault : FaultsIn(run.stats_json)) {
    const bool explained =
        std::any_of(run.findings.begin(), run.findings.end(), [&](const node::Finding& finding) {
          return Explains(finding, fault) && list.Counts(finding);
        });
    if (!explained) faults.push_back(fault.text);
  }
  return faults;
}

void SayFaults(const std::vector<std::string>& faults) {
  for (std::size_t i = 0; i < std::min(faults.size(), kMostFaults); ++i) Say("{}", faults[i]);
  if (faults.size() > kMostFaults)
    Say("{} more kernels or copies failed", faults.size() - kMostFaults);
}

}  // namespace

std::vector<std::string> IgnoredFaults(const ExecOptions& options, const RunOutcome& run,
                                       const FindingList& list) {
  if (options.allow_faults || run.deadlock || run.timeout || run.node_lost || run.code != 0)
    return {};
  return UnexplainedFaults(run, list);
}

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
  std::string why = run.deadlock_text;
  if (code == 0 && !RefusedIn(run.stats_json).empty()) {
    Say("the program exited with 0, but kernels of it could not be loaded");
    code = kExitNotLoaded;
    why = "kernels of the program could not be loaded";
  }
  SayFaults(UnexplainedFaults(run, *list));
  const std::vector<std::string> ignored = IgnoredFaults(options, run, *list);
  bool fault = code == 0 && !ignored.empty();
  if (fault) {
    Say("the program exited with 0, but kernels or copies of it failed");
    code = kExitFault;
    why = ignored.front();
  }
  if (!options.check || (run.node_lost && !run.timeout)) return code;
  const int own = code;
  SchedulesRun more;
  const bool started = code != kExitCannotRun && code != kExitNotFound;
  if (options.schedules > 0 && !run.deadlock && !run.timeout && !run.stopped && started) {
    more = RunSchedules(options, run, &*list);
    if (code == 0 && !more.failures.empty()) {
      code = more.failures.front().code;
      fault = more.failures.front().fault;
    }
  }
  const std::string text = list->Text(Checked(run.stats_json, more));
  std::fputs(text.c_str(), stderr);
  FindingRun checked{options.command, more.schedules, more.failures, code, Version()};
  checked.schedules.insert(checked.schedules.begin(), options.schedule);
  if (own != 0) checked.failures.insert(checked.failures.begin(), {options.schedule, own, why});
  const std::size_t counted = list->counted();
  const bool ended_well = code == 0 || fault;
  if (ended_well && counted != 0) checked.code = kExitFindings;
  if (!options.findings.empty() &&
      !WriteFile(options.findings, FileText(options, checked, list->Listed(), text)))
    return kExitInternal;
  // Neither hides the other.
  if (counted != 0 && !ended_well && !run.deadlock && !run.timeout)
    Say("the program also exited with code {}", code);
  return checked.code;
}

}  // namespace allranks::cli
