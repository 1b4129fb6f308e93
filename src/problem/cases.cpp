// Cases: timed and visible ones are cross products of lists, drawn ones ranges.
#include "problem/cases.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace allranks::problem {
namespace {

constexpr std::size_t kMostCases = 64;
constexpr int kMostDrawn = 16;
constexpr char kLargeCases[] = "large";
constexpr std::int64_t kLargestParam = std::int64_t{1} << 40;

bool IsOption(std::string_view key) {
  return key == "skew" || key == "profile" || key == "count" || key == "world";
}

// `timed` is one table or a list of them.
std::vector<const toml::table*> TablesOf(Section& cases, const char* key, Section::Need need) {
  std::vector<const toml::table*> tables;
  const char* expected = "a table such as { world = [8], n = [1, 4096] }, or a list of them";
  const toml::node* node = cases.Find(key, need, expected);
  if (node == nullptr) return tables;
  if (const toml::table* table = node->as_table()) {
    tables.push_back(table);
  } else if (const toml::array* list = node->as_array()) {
    for (const toml::node& element : *list) {
      if (element.is_table()) {
        tables.push_back(element.as_table());
      } else {
        cases.Wrong(&element, key, expected);
      }
    }
  } else {
    cases.Wrong(node, key, expected);
  }
  return tables;
}

// An integer or a list of them.
std::vector<std::int64_t> Numbers(Section& section, const std::string& key, std::int64_t low,
                                  std::int64_t high) {
  const std::string expected = fmt::format("a list of integers from {} to {}", low, high);
  std::vector<std::int64_t> numbers;
  const toml::node* node = section.Find(key.c_str(), Section::kRequired, expected);
  if (node == nullptr) return numbers;
  bool good = true;
  const auto take = [&](const toml::node& element) {
    const auto* value = element.as_integer();
    if (value == nullptr || value->get() < low || value->get() > high) {
      good = false;
    } else {
      numbers.push_back(value->get());
    }
  };
  if (const toml::array* list = node->as_array()) {
    for (const toml::node& element : *list) take(element);
  } else {
    take(*node);
  }
  if (!good || numbers.empty()) {
    section.Wrong(node, key, expected);
    numbers.clear();
  }
  return numbers;
}

struct Range {
  std::int64_t low = 1, high = 1, step = 1;
};

bool ReadNumber(std::string_view* text, std::int64_t* out) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *out);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return true;
}

bool Skip(std::string_view* text, std::string_view word) {
  if (!text->starts_with(word)) return false;
  text->remove_prefix(word.size());
  return true;
}

// 5, "1..300", "128..4096 step 128"
bool ReadRange(Section& section, const std::string& key, std::int64_t low, std::int64_t high,
               Range* out) {
  const std::string expected =
      fmt::format("a range such as \"1..300\" or \"128..4096 step 128\" within {}..{}", low, high);
  const toml::node* node = section.Find(key.c_str(), Section::kRequired, expected);
  if (node == nullptr) return false;
  Range range;
  bool good = false;
  if (const auto* value = node->as_integer()) {
    range.low = range.high = value->get();
    good = true;
  } else if (const auto* words = node->as_string()) {
    std::string_view text = words->get();
    good = ReadNumber(&text, &range.low) && Skip(&text, "..") && ReadNumber(&text, &range.high);
    if (good && !text.empty()) good = Skip(&text, " step ") && ReadNumber(&text, &range.step);
    good = good && text.empty();
  }
  if (!good || range.low < low || range.high > high || range.low > range.high || range.step < 1) {
    section.Wrong(node, key, expected);
    return false;
  }
  *out = range;
  return true;
}

void ReadList(const toml::table* table, const char* key, Case::Kind kind, Faults* faults,
              Problem* problem) {
  const bool large = std::string_view(key) == kLargeCases;
  Section section(table, fmt::format("cases.{}", key), faults);
  const auto worlds = Numbers(section, "world", 1, problem->max_ranks);
  std::vector<std::vector<std::int64_t>> lists;
  for (const std::string& name : problem->params)
    lists.push_back(Numbers(section, name, 0, kLargestParam));
  bool skew = false;
  if (kind == Case::Kind::kVisible) section.Flag("skew", &skew);
  std::vector<std::string> profiles = {""};
  section.Texts("profile", &profiles);
  section.RejectOthers();
  std::size_t count = worlds.size() * profiles.size();
  for (const auto& list : lists) count = std::min(count * list.size(), kMostCases + 1);
  if (problem->cases.size() + count > kMostCases)
    return faults->Add(table, "[cases] has more than {} cases", kMostCases);
  // An odometer over the lists: the last parameter runs fastest.
  for (const std::string& profile : profiles) {
    for (const std::int64_t world : worlds) {
      std::vector<std::size_t> at(lists.size(), 0);
      for (std::size_t left = count / worlds.size() / profiles.size(); left > 0; --left) {
        Case one;
        one.kind = kind;
        one.large = large;
        one.world = static_cast<int>(world);
        one.skew = skew;
        one.profile = profile;
        for (std::size_t i = 0; i < lists.size(); ++i) one.params.push_back(lists[i][at[i]]);
        one.name = NameOf(*problem, one);
        for (const Case& other : problem->cases) {
          if (other.name == one.name) faults->Add(table, "[cases] has {} twice", one.name);
        }
        problem->cases.push_back(std::move(one));
        for (std::size_t i = lists.size(); i-- > 0;) {
          if (++at[i] < lists[i].size()) break;
          at[i] = 0;
        }
      }
    }
  }
}

void ReadDrawn(const toml::table* table, Faults* faults, Problem* problem) {
  if (table == nullptr) return;
  Section section(table, "cases.drawn", faults);
  DrawnCases& drawn = problem->drawn;
  section.Int("count", &drawn.count, 1, kMostDrawn, Section::kRequired);
  section.Flag("skew", &drawn.skew);
  Range world;
  ReadRange(section, "world", 1, problem->max_ranks, &world);
  if (world.step != 1) faults->Add(table, "[cases.drawn] world takes no step");
  drawn.world_low = static_cast<int>(world.low);
  drawn.world_high = static_cast<int>(world.high);
  for (const std::string& name : problem->params) {
    Range range;
    ReadRange(section, name, 0, kLargestParam, &range);
    drawn.low.push_back(range.low);
    drawn.high.push_back(range.high);
    drawn.step.push_back(range.step);
  }
  section.RejectOthers();
}

}  // namespace

void ReadParams(const toml::table* table, Faults* faults, Problem* problem) {
  Section cases(table, "cases", faults);
  auto tables = TablesOf(cases, "timed", Section::kOptional);
  if (tables.empty()) tables = TablesOf(cases, "visible", Section::kOptional);
  if (tables.empty()) return faults->Add(table, "[cases] has neither timed nor visible cases");
  Section first(tables[0], "cases", faults);
  for (const auto& [key, node] : first.InOrder()) {
    if (IsOption(key)) continue;
    if (!IsName(key) || key == "rank") {
      faults->Add(node, "[cases] '{}' cannot be the name of a parameter: expected [a-z][a-z0-9_]*",
                  key);
      continue;
    }
    problem->params.push_back(key);
  }
}

void ReadCases(const toml::table* table, Faults* faults, Problem* problem) {
  if (table == nullptr) return;
  Section cases(table, "cases", faults);
  for (const toml::table* one : TablesOf(cases, "timed", Section::kOptional))
    ReadList(one, "timed", Case::Kind::kTimed, faults, problem);
  const auto large = TablesOf(cases, kLargeCases, Section::kOptional);
  if (!large.empty() && problem->window != Window::kGraph)
    faults->Add(table, "[cases] only problems of the window 'graph' have large cases");
  for (const toml::table* one : large)
    ReadList(one, kLargeCases, Case::Kind::kTimed, faults, problem);
  for (const toml::table* one : TablesOf(cases, "visible", Section::kOptional))
    ReadList(one, "visible", Case::Kind::kVisible, faults, problem);
  ReadDrawn(cases.Table("drawn", Section::kOptional), faults, problem);
  cases.RejectOthers();
}

std::string NameOf(const Problem& problem, const Case& one) {
  CHECK_EQ(one.params.size(), problem.params.size());
  const char* kind = one.large ? kLargeCases : one.kind == Case::Kind::kTimed ? "timed" : "visible";
  std::string name = fmt::format("{}.w{}", kind, one.world);
  for (std::size_t i = 0; i < one.params.size(); ++i)
    name += fmt::format(".{}{}", problem.params[i], one.params[i]);
  if (!one.profile.empty()) name += "." + one.profile;
  return name;
}

Case DrawCase(const Problem& problem, int index, int world,
              const std::function<std::uint64_t(std::uint64_t)>& below) {
  Case one;
  one.name = fmt::format("drawn.{}", index);
  one.kind = Case::Kind::kDrawn;
  one.world = world;
  one.skew = problem.drawn.skew;
  for (std::size_t i = 0; i < problem.params.size(); ++i) {
    const std::int64_t low = problem.drawn.low[i], step = problem.drawn.step[i];
    const auto choices = static_cast<std::uint64_t>((problem.drawn.high[i] - low) / step) + 1;
    one.params.push_back(low + step * static_cast<std::int64_t>(below(choices)));
  }
  return one;
}

}  // namespace allranks::problem
