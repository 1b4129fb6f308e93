// See schedules.h. Each run is a child process with a supervisor of its own; it leaves its outcome
// in a file. Findings are merged in the order of schedules, whichever run ended first.
#include "cli/schedules.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <utility>

#include "cli/private_folder.h"
#include "cli/stats.h"
#include "node/findings.h"
#include "node/schedule_choice.h"

namespace allranks::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kTail = 5;  // lines of a failed run's output that are shown

node::PlaceCounts PlacesIn(const std::string& stats) {
  node::PlaceCounts places{};
  const json parsed = json::parse(stats, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("checked")) return places;
  const json& counts = parsed["checked"]["places"];
  for (std::size_t i = 0; i < places.size() && i < counts.size(); ++i)
    places[i] = counts[i].get<std::uint64_t>();
  return places;
}

std::string Tail(const fs::path& file) {
  std::ifstream stream(file);
  std::deque<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(std::move(line));
    if (lines.size() > kTail) lines.pop_front();
  }
  std::string text;
  for (const std::string& line : lines) text += "    " + line + "\n";
  return text;
}

[[noreturn]] void RunChild(const ExecOptions& options, std::uint64_t schedule,
                           const fs::path& folder, const FindingList& list, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kExitInternal);
  const int input = open("/dev/null", O_RDONLY);
  const int output = open((folder / fmt::format("{}.txt", schedule)).c_str(),
                          O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  ExecOptions own = options;
  own.schedule = schedule;
  own.trace.clear();
  const RunOutcome outcome = RunOnce(own, true);
  const std::vector<std::string> ignored = IgnoredFaults(own, outcome, list);
  const json result = {{"code", outcome.refused     ? *outcome.refused
                                : outcome.timeout   ? kExitTimeout
                                : outcome.node_lost ? kExitInternal
                                : !ignored.empty()  ? kExitFault
                                                    : outcome.code},
                       {"fault", ignored.empty() ? json(nullptr) : json(ignored.front())},
                       {"deadlock", outcome.deadlock ? json(outcome.deadlock_text) : json(nullptr)},
                       {"timeout", outcome.timeout ? json(outcome.deadlock_text) : json(nullptr)},
                       {"findings", json::parse(node::ToJson(outcome.findings))}};
  std::ofstream file(folder / fmt::format("{}.json", schedule));
  file << result.dump(-1, ' ', false, json::error_handler_t::replace);
  file.close();
  _exit(file ? 0 : kExitInternal);
}

// One run's outcome into the list.
void Take(std::uint64_t schedule, const fs::path& folder, FindingList* list, SchedulesRun* all) {
  std::ifstream file(folder / fmt::format("{}.json", schedule));
  std::stringstream text;
  text << file.rdbuf();
  const json result = json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  const auto fail = [&](int code, const std::string& what, bool fault = false) {
    all->failures.push_back(
        {schedule, code, fmt::format("under schedule {}: {}", schedule, what), fault});
  };
  if (!result.is_object()) {
    fail(kExitInternal, "the run wrote no report");
    return;
  }
  std::vector<node::Finding> findings = node::FindingsFromJson(result["findings"].dump());
  for (node::Finding& finding : findings) finding.schedule = schedule;
  list->Add(std::move(findings));
  if (result["deadlock"].is_string()) {
    fail(kExitDeadlock, result["deadlock"].get<std::string>());
  } else if (result["timeout"].is_string()) {
    fail(kExitTimeout, result["timeout"].get<std::string>());
  } else if (result["fault"].is_string()) {
    fail(kExitFault, result["fault"].get<std::string>(), true);
  } else if (const int code = result["code"].get<int>(); code != 0) {
    fail(code, fmt::format("the program exited with code {}\n{}", code,
                           Tail(folder / fmt::format("{}.txt", schedule))));
  }
}

}  // namespace

SchedulesRun RunSchedules(const ExecOptions& options, const RunOutcome& plain, FindingList* list) {
  SchedulesRun all;
  all.schedules = node::ChooseSchedules(PlacesIn(plain.stats_json),
                                        static_cast<std::size_t>(options.schedules));
  const PrivateFolder made;
  const fs::path folder = made.path();
  if (folder.empty()) {
    all.failures.push_back({0, kExitInternal, "cannot create a temporary folder"});
    return all;
  }
  const std::size_t jobs = options.jobs > 0 ? static_cast<std::size_t>(options.jobs)
                                            : std::max(1u, std::thread::hardware_concurrency());
  std::map<pid_t, std::uint64_t> running;
  const pid_t parent = getpid();
  for (std::size_t next = 0; next < all.schedules.size() || !running.empty();) {
    if (next < all.schedules.size() && running.size() < jobs) {
      std::fflush(nullptr);
      const pid_t child = fork();
      if (child == 0) RunChild(options, all.schedules[next], folder, *list, parent);
      if (child > 0) running[child] = all.schedules[next];
      ++next;
      continue;
    }
    const pid_t over = waitpid(-1, nullptr, 0);
    if (over > 0) running.erase(over);
    if (over < 0) break;
  }
  for (const std::uint64_t schedule : all.schedules) Take(schedule, folder, list, &all);
  for (const FindingRun::Failure& failure : all.failures)
    std::fprintf(stderr, "allranks: %s%s", failure.text.c_str(),
                 failure.text.ends_with('\n') ? "" : "\n");
  return all;
}

}  // namespace allranks::cli
