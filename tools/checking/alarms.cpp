// `checking alarms`: nothing is found in what is right, under many schedules: references, baselines
// and alternates of all problems, and test programs but what they do wrong on
// purpose. What is `portability` is counted and shown. `checking exact`: the findings of wrong
// programs are the same in every run, alone and beside load.
#include "checking/alarms.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "checking/items.h"
#include "checking/run.h"

namespace allranks::checking {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr int kProgramSeconds = 120, kJudgeSeconds = 3600;

struct Told {
  int runs = 0;
  std::map<std::string, int> kinds;  // of findings that do not count
  std::string wrong;                 // what speaks against the item; empty: nothing
};

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
  std::vector<std::string> command = {ALLRANKS_COMMAND,
                                      "judge",
                                      item.problem.string(),
                                      "--solution",
                                      item.source.string(),
                                      "--seed",
                                      "alarms",
                                      "--json"};
  if (choice.all_cases || item.one_case.empty()) {
    command.push_back("--visible");
  } else {
    command.insert(command.end(), {"--case", item.one_case});
  }
  if (choice.seeds > 0)
    command.insert(command.end(), {"--schedules", std::to_string(choice.seeds)});
  const Outcome outcome = Run(command, folder, kJudgeSeconds);
  const Json json = Json::parse(outcome.out, nullptr, false);
  Told told;
  if (json.is_discarded()) {
    told.wrong = fmt::format("no JSON (exit {}): {}", outcome.code, outcome.err);
    return told;
  }
  for (const Json& one : json["cases"]) told.runs += 1 + one.value("schedules", 0);
  Sort(json["findings"], {}, &told);
  if (!json["pass"].get<bool>())
    told.wrong = fmt::format("{}: {}{}", json["verdict"].get<std::string>(),
                             json["text"].get<std::string>(), told.wrong);
  return told;
}

std::vector<std::string> ExecCommand(const Item& item, int seed, const fs::path& findings) {
  std::vector<std::string> command = {"env"};
  command.insert(command.end(), item.environment.begin(), item.environment.end());
  command.insert(command.end(), {ALLRANKS_COMMAND, "exec", "--check", "--schedule",
                                 std::to_string(seed), "--findings", findings.string()});
  command.insert(command.end(), item.command.begin(), item.command.end());
  return command;
}

Told ExecOne(const Item& item, const fs::path& folder, int seeds) {
  Told told;
  const fs::path findings = folder / "findings.json";
  for (int seed = 0; seed <= seeds; ++seed) {
    fs::remove(findings);
    const Outcome outcome = Run(ExecCommand(item, seed, findings), folder, kProgramSeconds);
    ++told.runs;
    const Json json = Json::parse(ReadText(findings), nullptr, false);
    if (json.is_discarded()) {
      told.wrong = " no findings file";
    } else {
      Sort(json["findings"], item.finds, &told);
    }
    if (told.wrong.empty() && (outcome.code == 0 || outcome.code == 87)) continue;
    told.wrong = fmt::format("schedule {}, exit {}{}:{}", seed, outcome.code,
                             outcome.late ? ", too late" : "",
                             told.wrong.empty() ? " " + outcome.err.substr(0, 600) : told.wrong);
    break;
  }
  return told;
}

}  // namespace

int Alarms(const fs::path& folder, const Choice& choice) {
  std::vector<Item> all = Solutions(), items;
  for (Item& program : Programs(folder)) all.push_back(std::move(program));
  int number = 0, skipped = 0;
  for (Item& item : all) {
    const auto named = [&](const std::string& part) {
      return item.name.find(part) != std::string::npos;
    };
    if (!choice.only.empty() && std::none_of(choice.only.begin(), choice.only.end(), named))
      continue;
    if (number++ % choice.every != choice.part) continue;
    if (item.skipped.empty()) {
      items.push_back(std::move(item));
    } else {
      ++skipped;
    }
  }

  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  int solutions = 0, programs = 0, alarmed = 0;
  std::int64_t runs = 0;
  std::map<std::string, int> kinds;
  const auto work = [&](const fs::path& scratch) {
    fs::create_directory(scratch);
    for (std::size_t i = next++; i < items.size(); i = next++) {
      const Item& item = items[i];
      const bool solution = !item.problem.empty();
      const Told told =
          solution ? JudgeOne(item, scratch, choice) : ExecOne(item, scratch, choice.seeds);
      const std::lock_guard lock(mutex);
      ++(solution ? solutions : programs);
      runs += told.runs;
      for (const auto& [kind, count] : told.kinds) ++kinds[kind];
      if (told.wrong.empty()) continue;
      ++alarmed;
      fmt::print("{}: {}\n", item.name, told.wrong);
      std::fflush(stdout);
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < choice.jobs; ++i) workers.emplace_back(work, folder / std::to_string(i));
  for (std::thread& worker : workers) worker.join();

  fmt::print(
      "{} solutions and {} runs of programs, {} schedules each, {} checked runs in all: {} "
      "with an alarm\n",
      solutions, programs, choice.seeds + 1, runs, alarmed);
  if (skipped != 0) fmt::print("{} not run: their source says why\n", skipped);
  for (const auto& [kind, count] : kinds)
    fmt::print("{}: told of {} of them, not counted\n", kind, count);
  return alarmed == 0 && solutions + programs > 0 ? 0 : 1;
}

int Exact(const fs::path& folder, int runs, const std::string& only) {
  const std::vector<Item> items = WrongSolutions();
  int differ = 0;
  std::size_t found = 0;
  for (const Item& item : items) {
    if (item.name.find(only) == std::string::npos) continue;
    const std::vector<std::string> command = {
        ALLRANKS_COMMAND, "judge", item.problem.string(), "--solution", item.source.string(),
        "--seed",         "exact", "--visible",           "--json"};
    const auto findings = [&] {
      const Json json = Json::parse(Run(command, folder, kJudgeSeconds).out, nullptr, false);
      return json.is_discarded() ? std::string("no JSON") : json["findings"].dump();
    };
    const std::string first = findings();
    const std::size_t count = Json::parse(first, nullptr, false).size();
    found += count;
    for (const bool loaded : {false, true}) {
      const Load load(loaded ? 3 : 0);
      int different = 0;
      for (int run = 0; run < runs; ++run) different += findings() == first ? 0 : 1;
      fmt::print("{}: {} findings, {} of {} runs {} differ from the first\n", item.name, count,
                 different, runs, loaded ? "beside three busy processes" : "alone");
      std::fflush(stdout);
      differ += different;
    }
  }
  return differ == 0 && found > 0 ? 0 : 1;
}

}  // namespace allranks::checking
