// See items.h.
#include "checking/items.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "common/build.h"
#include "common/run.h"
#include "problem/lock.h"
#include "problem/problem.h"

namespace allranks::checking {

namespace fs = std::filesystem;

namespace {

const fs::path kSource = ALLRANKS_SOURCE_DIR;

std::vector<fs::path> SourcesOf(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".cu") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// Of the visible cases that take no more instructions than this (the reference, by its lock) the
// largest one of the largest world: several blocks of several devices, and cheap enough for a
// hundred schedules.
constexpr std::uint64_t kMostInstructions = 12'000'000;

std::string CaseOf(const fs::path& folder) {
  const Result<problem::Problem> loaded = problem::Load(folder);
  if (!loaded) return {};
  const Result<problem::Lock> lock = problem::LoadLock(*loaded);
  if (!lock) return {};
  std::string name;
  std::pair<int, std::uint64_t> best = {0, 0};
  for (const problem::Case& one : loaded->cases) {
    if (one.kind != problem::Case::Kind::kVisible) continue;
    const problem::LockEntry* entry = lock->Find("h100x8", one.name);
    const std::uint64_t size = entry == nullptr ? 0 : entry->reference.thread_instructions;
    if (size > kMostInstructions || std::pair(one.world, size) < best) continue;
    best = {one.world, size};
    name = one.name;
  }
  return name;
}

Item Solution(const std::string& group, const fs::path& problem, const fs::path& source) {
  Item item;
  item.group = group;
  item.name = fs::relative(source, kSource).string();
  item.problem = problem;
  item.source = source;
  item.one_case = CaseOf(problem);
  return item;
}

// "// finds: KIND..." and "// unchecked: WHY" among the comments at the top of a program.
void ReadHeader(Item* item) {
  std::ifstream file(item->source);
  for (std::string line; std::getline(file, line) && line.starts_with("//");) {
    if (line.starts_with("// finds: ")) {
      std::istringstream words(line.substr(10));
      for (std::string word; words >> word;) item->finds.insert(word);
    }
    if (line.starts_with("// unchecked: ")) item->skipped = line.substr(14);
  }
}

// The source of the test program.<subject>.<name>[.<run>].
fs::path SourceOf(const std::string& test) {
  const std::size_t subject = test.find('.') + 1, name = test.find('.', subject) + 1;
  const fs::path folder = kSource / "tests/programs" / test.substr(subject, name - 1 - subject);
  const std::string stem = test.substr(name, test.find('.', name) - name);
  const fs::path file = folder / (stem + ".cu");
  return fs::exists(file) ? file : folder / stem / "main.cu";
}

}  // namespace

std::vector<Item> Solutions() {
  std::vector<Item> items;
  for (const fs::path& problem : problem::Find(kSource / "problems")) {
    items.push_back(Solution("references", problem, problem / "reference.cu"));
    items.push_back(Solution("baselines", problem, problem / "baseline.cu"));
    for (const fs::path& source : SourcesOf(problem / "alternates"))
      items.push_back(Solution("alternates", problem, source));
  }
  return items;
}

std::vector<Item> WrongSolutions() {
  std::vector<Item> items;
  for (const fs::path& problem : problem::Find(kSource / "problems")) {
    const fs::path bugs = kSource / "tests/mutants/blind" / problem.filename();
    for (const fs::path& source : SourcesOf(bugs))
      items.push_back(Solution("wrong", problem, source));
  }
  return items;
}

std::vector<Item> Programs(const fs::path& scratch) {
  const tools::Outcome listed = tools::Run(
      {"ctest", "--test-dir", ALLRANKS_BINARY_DIR, "--show-only=json-v1", "-R", "^program\\."},
      scratch, 60);
  const nlohmann::json json = nlohmann::json::parse(listed.out, nullptr, false);
  std::vector<Item> items;
  if (json.is_discarded()) {
    fmt::print(stderr, "ctest: {}{}\n", listed.out, listed.err);
    return items;
  }
  for (const auto& test : json["tests"]) {
    const auto words = test.value("command", std::vector<std::string>{});
    if (words.size() < 3 || fs::path(words[0]).filename() != "allranks" || words[1] != "exec")
      continue;
    Item item;
    item.name = test["name"].get<std::string>();
    item.group = "programs";
    item.source = SourceOf(item.name);
    item.command.assign(words.begin() + 2, words.end());
    for (const auto& property : test["properties"])
      if (property["name"] == "ENVIRONMENT") property["value"].get_to(item.environment);
    ReadHeader(&item);
    items.push_back(std::move(item));
  }
  std::map<fs::path, int> runs;
  for (const Item& item : items) ++runs[item.source];
  for (Item& item : items) item.shares = runs[item.source];
  return items;
}

bool IsNamed(const Item& item, const std::vector<std::string>& parts) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
           return item.name.find(part) != std::string::npos;
         });
}

std::string ContentOf(const Item& item) {
  std::vector<fs::path> files = {item.source};
  for (const std::string& word : item.command)
    if (fs::path(word).is_absolute() && fs::is_regular_file(word)) files.push_back(word);
  if (!item.problem.empty()) {
    for (const char* name : {"problem.toml", "template.cu", "oracle.cpp", "reference.lock"})
      files.push_back(item.problem / name);
    for (const auto& entry : fs::recursive_directory_iterator(kSource / "include"))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  }
  tools::Hash hash;
  for (const fs::path& file : files) hash.Add(tools::ReadText(file));
  return hash.Text();
}

std::vector<std::string> JudgeCommand(const Item& item, const std::string& allranks,
                                      const std::string& seed, bool all_cases) {
  std::vector<std::string> command = {
      allranks, "judge", item.problem.string(), "--solution", item.source.string(), "--seed",
      seed,     "--json"};
  // A hundred schedules take more time than a judgement has.
  command.insert(command.end(), {"--rank-seconds", "1200", "--cpu-seconds", "3600"});
  if (all_cases || item.one_case.empty()) {
    command.push_back("--visible");
  } else {
    command.insert(command.end(), {"--case", item.one_case});
  }
  return command;
}

}  // namespace allranks::checking
