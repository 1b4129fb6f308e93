// `checking alarms`: nothing is found in what is right, under many schedules: references, baselines
// and alternates of all problems, and test programs but what they do wrong on purpose. What is
// `portability` is counted and shown. A solution is one judgement with all schedules, drawn and
// directed. A program has to start for each, which takes some 45 ms, so the runs of one program
// share their number.
#include "checking/alarms.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "checking/items.h"
#include "checking/kept.h"
#include "common/document.h"
#include "common/run.h"

namespace allranks::checking {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kProgramSeconds = 300, kScheduleSeconds = 10, kJudgeSeconds = 3600;
constexpr std::chrono::seconds kBetweenLines(30);  // of how far it is

struct Told {
  int runs = 0;
  double seconds = 0;                // of CPU
  std::map<std::string, int> kinds;  // of findings that do not count
  std::string wrong;                 // what speaks against the item; empty: nothing
};

Json ToJson(const Told& told) {
  return {
      {"runs", told.runs}, {"seconds", told.seconds}, {"kinds", told.kinds}, {"wrong", told.wrong}};
}

Told FromJson(const Json& json) {
  return {json.at("runs"), json.at("seconds"), json.at("kinds"), json.at("wrong")};
}

std::string Where(const Json& finding) {
  std::string text = finding.value("kind", "?");
  for (const auto& access : finding.value("accesses", Json::array()))
    text += fmt::format("{} {}:{}", access == finding["accesses"].front() ? "" : " and",
                        access["file"].is_string() ? access["file"].get<std::string>() : "?",
                        access["line"].dump());
  return text;
}

// Findings that count and are not expected go to `wrong`.
void Sort(const Json& findings, const std::set<std::string>& expected, Told* told) {
  for (const Json& finding : findings) {
    const std::string kind = finding.value("kind", "?");
    if (kind == "portability" || kind == "leak" || expected.contains(kind)) {
      ++told->kinds[kind];
    } else {
      told->wrong += fmt::format("\n    {}", Where(finding));
    }
  }
}

Told JudgeOne(const Item& item, const fs::path& folder, const Choice& choice) {
  std::vector<std::string> command = JudgeCommand(item, choice.command, "alarms", choice.all_cases);
  if (choice.seeds > 0)
    command.insert(command.end(), {"--schedules", std::to_string(choice.seeds)});
  const tools::Outcome outcome = tools::Run(command, folder, kJudgeSeconds);
  const Json json = Json::parse(outcome.out, nullptr, false);
  Told told;
  if (!json.is_object() || !json.contains("cases")) {
    told.wrong = fmt::format("no JSON (exit {}): {}", outcome.code, outcome.err);
    return told;
  }
  told.seconds = json["cost"]["cpu_s"];
  for (const Json& one : json["cases"]) {
    const int schedules = one.value("schedules", 0);
    told.runs += 1 + schedules;
    if (json["pass"].get<bool>() && choice.seeds > 0 && schedules != choice.seeds)
      told.wrong += fmt::format("\n    {}: {} schedules", one.value("name", "?"), schedules);
  }
  Sort(json["findings"], {}, &told);
  if (!json["pass"].get<bool>())
    told.wrong = fmt::format("{}: {}{}", json["verdict"].get<std::string>(),
                             json["text"].get<std::string>(), told.wrong);
  return told;
}

Told ExecOne(const Item& item, const fs::path& folder, const Choice& choice) {
  const fs::path findings = folder / "findings.json";
  // Rounded up: all runs of a source together have as many as were asked for, or a few more.
  const int seeds = choice.each ? choice.seeds : (choice.seeds + item.shares - 1) / item.shares;
  std::vector<std::string> command = {"env"};
  command.insert(command.end(), item.environment.begin(), item.environment.end());
  command.insert(command.end(),
                 {choice.command, "exec", "--check", "--schedules", std::to_string(seeds), "-j",
                  "1", "--findings", findings.string()});
  command.insert(command.end(), item.command.begin(), item.command.end());
  fs::remove(findings);
  const tools::Outcome outcome =
      tools::Run(command, folder, kProgramSeconds + kScheduleSeconds * seeds);
  Told told;
  told.runs = 1 + seeds;
  told.seconds = outcome.seconds;
  const Json json = Json::parse(tools::ReadText(findings), nullptr, false);
  if (json.is_discarded()) {
    told.wrong = " no findings file";
  } else {
    Sort(json["findings"], item.finds, &told);
    for (const Json& failure : json["failures"])
      told.wrong += fmt::format("\n    schedule {}: exit {}", failure["schedule"].dump(),
                                failure["code"].dump());
  }
  if (!told.wrong.empty() || (outcome.code != 0 && outcome.code != 87))
    told.wrong = fmt::format("exit {}{}:{} {}", outcome.code, outcome.late ? ", too late" : "",
                             told.wrong, outcome.err.substr(0, 600));
  return told;
}

std::vector<Item> Chosen(const fs::path& scratch, const Choice& choice, int* skipped) {
  std::vector<Item> all = Solutions(), items;
  for (Item& program : Programs(scratch)) all.push_back(std::move(program));
  int number = 0;
  for (Item& item : all) {
    if (!IsNamed(item, choice.only)) continue;
    if (number++ % choice.every != choice.part) continue;
    if (item.skipped.empty()) {
      items.push_back(std::move(item));
    } else {
      ++*skipped;
    }
  }
  // Dear and cheap ones mixed: then what is done says how long the rest takes.
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    const std::hash<std::string> hash;
    return hash(a.name) < hash(b.name);
  });
  return items;
}

// What one group of items, or all of them, came to.
struct Row {
  int items = 0, alarms = 0;
  std::set<fs::path> sources;
  std::int64_t runs = 0;
  double seconds = 0;
  std::map<std::string, int> kinds;  // how many items were told of them

  void Add(const Item& item, const Told& told) {
    ++items;
    sources.insert(item.source);
    alarms += told.wrong.empty() ? 0 : 1;
    runs += told.runs;
    seconds += told.seconds;
    for (const auto& [kind, count] : told.kinds) ++kinds[kind];
  }
};

std::string Table(const std::map<std::string, Row>& groups, const Row& all, const Choice& choice,
                  const std::string& build) {
  std::string text = fmt::format(
      "As of {}, build `{}`: `checking alarms --seeds {}{}{} --write`, {:.0f} minutes of one "
      "core.\n\n"
      "| what | sources | runs of them | schedules of each source | checked runs | with "
      "`portability` | alarms |\n|---|---:|---:|---:|---:|---:|---:|\n",
      tools::Today(), build, choice.seeds, choice.each ? " --each" : "",
      choice.all_cases ? " --all-cases" : "", all.seconds / 60);
  const auto add = [&](const std::string& name, const Row& row) {
    const auto told = row.kinds.find("portability");
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", name, row.sources.size(),
                        row.items, choice.seeds + 1, row.runs,
                        told == row.kinds.end() ? 0 : told->second, row.alarms);
  };
  for (const auto& [name, row] : groups) add(name, row);
  add("**all**", all);
  return text;
}

}  // namespace

int Alarms(const fs::path& scratch, const Choice& choice) {
  if (choice.write && (choice.every != 1 || !choice.only.empty())) {
    fmt::print(stderr, "--write is for all items\n");
    return 2;
  }
  int skipped = 0;
  const std::vector<Item> items = Chosen(scratch, choice, &skipped);
  const auto program = [](const Item& item) { return item.problem.empty(); };
  if (choice.only.empty() && std::none_of(items.begin(), items.end(), program)) {
    fmt::print(stderr, "there are no programs: are they built?\n");
    return 1;
  }
  Kept kept(choice.folder, choice.command, choice.resume);

  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  Row all;
  std::map<std::string, Row> groups;
  int fresh = 0;
  const Clock::time_point begin = Clock::now();
  Clock::time_point said = begin;
  const auto work = [&](const fs::path& folder) {
    fs::create_directory(folder);
    for (std::size_t i = next++; i < items.size(); i = next++) {
      const Item& item = items[i];
      const bool solution = !item.problem.empty();
      const std::string key = fmt::format("alarms {} {} {} {} {}", item.name, ContentOf(item),
                                          choice.all_cases ? "all" : item.one_case, choice.seeds,
                                          choice.each ? 1 : item.shares);
      const auto before = kept.Find(key);
      Told told = before     ? FromJson(*before)
                  : solution ? JudgeOne(item, folder, choice)
                             : ExecOne(item, folder, choice);
      // What failed runs again the next time.
      if (!before && told.wrong.empty() && !kept.Add(key, ToJson(told)))
        told.wrong = "the command was built anew meanwhile";
      const std::lock_guard lock(mutex);
      all.Add(item, told);
      groups[item.group].Add(item, told);
      if (!told.wrong.empty()) fmt::print("{}: {}\n", item.name, told.wrong);
      std::fflush(stdout);
      if (before) continue;
      ++fresh;
      const Clock::time_point now = Clock::now();
      if (now - said < kBetweenLines) continue;
      said = now;
      const double each = std::chrono::duration<double>(now - begin).count() / fresh;
      fmt::print(
          stderr, "{} of {} done, {} with an alarm, about {:.0f} minutes to go\n", all.items,
          items.size(), all.alarms,
          each * static_cast<double>(items.size() - static_cast<std::size_t>(all.items)) / 60);
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < choice.jobs; ++i) workers.emplace_back(work, scratch / std::to_string(i));
  for (std::thread& worker : workers) worker.join();

  for (const auto& [name, row] : groups)
    fmt::print(
        "{}: {} sources, {} runs, {} schedules, {} checked runs, {:.0f} s of CPU: {} with an "
        "alarm\n",
        name, row.sources.size(), row.items, choice.seeds + 1, row.runs, row.seconds, row.alarms);
  if (skipped != 0) fmt::print("{} not run: their source says why\n", skipped);
  for (const auto& [kind, count] : all.kinds)
    fmt::print("{}: told of {} of them, not counted\n", kind, count);
  if (choice.write && !WriteInto("alarms", Table(groups, all, choice, kept.build()))) return 1;
  return all.alarms == 0 && all.items > 0 ? 0 : 1;
}

}  // namespace allranks::checking
