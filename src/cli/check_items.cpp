// Gathers the sources of a problem, and decides on their judgements.
#include "cli/check_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "problem/controls.h"
#include "problem/source.h"

namespace allranks::cli {
namespace {

namespace fs = std::filesystem;
using judge::Verdict;
using Kind = CheckItem::Kind;

constexpr std::size_t kLeastMutants = 12;
constexpr std::size_t kLeastAlternates = 1;

std::vector<fs::path> Sources(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".cu") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

CheckItem ItemOf(Kind kind, std::string name, std::string expected, Result<std::string> text) {
  CheckItem item;
  item.kind = kind;
  item.name = std::move(name);
  item.expected = std::move(expected);
  if (text) {
    item.source = std::move(*text);
  } else {
    item.error = text.error().message;
  }
  return item;
}

// Outputs are wrong as they should be, and the checker says why.
bool IsExplained(const CheckItem& item) {
  const judge::Judgement& judgement = item.judgement;
  return item.expected == "wrong_result" && judgement.checked && !judgement.lenient &&
         (judgement.verdict == Verdict::kRace || judgement.verdict == Verdict::kMemoryError);
}

}  // namespace

std::vector<CheckItem> ItemsOf(const problem::Problem& problem, std::vector<std::string>* faults) {
  const fs::path& folder = problem.folder;
  std::vector<CheckItem> items;
  items.push_back(
      ItemOf(Kind::kReference, "reference", "pass", problem::ReadFile(folder / "reference.cu")));
  items.push_back(
      ItemOf(Kind::kBaseline, "baseline", "pass", problem::ReadFile(folder / "baseline.cu")));
  if (std::error_code error; fs::exists(folder / "nccl.cu", error))
    items.push_back(ItemOf(Kind::kNccl, "nccl", "pass", problem::ReadFile(folder / "nccl.cu")));
  std::size_t alternates = 0;
  for (const fs::path& path : Sources(folder / "alternates")) {
    ++alternates;
    items.push_back(ItemOf(Kind::kAlternate, "alternate " + path.stem().string(), "pass",
                           problem::ReadFile(path)));
  }
  items.push_back(
      ItemOf(Kind::kRepeat, "reference again", "pass", problem::ReadFile(folder / "reference.cu")));
  const auto form = problem::TemplateOf(problem);
  items.push_back(ItemOf(Kind::kTemplate, "template", "fail", form));
  const std::vector<problem::Control> controls = problem::ControlsOf(problem);
  for (const problem::Control& control : controls) {
    items.push_back(
        ItemOf(Kind::kControl, "control " + control.name, control.verdict, control.region));
    items.back().error = control.error;
  }
  for (const problem::Mutant& mutant : problem.mutants) {
    CheckItem item;
    item.kind = Kind::kMutant;
    item.name = "mutant " + mutant.name;
    item.expected = mutant.verdict;
    item.needs_checker = mutant.needs_checker;
    auto text = problem::MutantOf(problem, mutant);
    if (text) {
      item.source = std::move(*text);
    } else {
      item.error = text.error().message;
    }
    items.push_back(std::move(item));
  }
  const auto demand = [&](bool good, const std::string& text) {
    if (!good) faults->push_back(text);
  };
  demand(
      problem.mutants.size() >= kLeastMutants,
      fmt::format("{} mutants; at least {} are required", problem.mutants.size(), kLeastMutants));
  demand(alternates >= kLeastAlternates,
         fmt::format("{} alternates; at least {} are required", alternates, kLeastAlternates));
  demand(!controls.empty(), "there are no controls/*.cu, and none can be made");
  for (const char* file : {"statement.md", "oracle.cpp"}) {
    const auto text = problem::ReadFile(folder / file);
    demand(text && !text->empty(), fmt::format("{} is missing or empty", file));
  }
  if (form) {
    const auto region = problem::SplitTemplate(*form);
    demand(region.has_value(), "template.cu: " + (region ? "" : region.error().message));
  }
  return items;
}

void Decide(const problem::Problem&, CheckItem* item) {
  const judge::Judgement& judgement = item->judgement;
  const std::string verdict = judge::NameOf(judgement.verdict);
  const bool passed = judgement.verdict == Verdict::kPass;
  if (item->expected == "fail") {
    item->good = !passed && judgement.verdict != Verdict::kInternalError &&
                 judgement.verdict != Verdict::kUnsupported;
  } else {
    item->good = verdict == item->expected || IsExplained(*item);
  }
  if (!item->good)
    item->because = fmt::format("{} instead of {}{}{}", verdict, item->expected,
                                judgement.text.empty() ? "" : ": ", judgement.text);
  if (!item->good || item->expected != "pass") return;
  for (const judge::CaseResult& one : judgement.cases) {
    if (one.ran) continue;
    item->good = false;
    item->because = fmt::format("case {} was not run", one.what.name);
  }
}

std::string Difference(const judge::Judgement& a, const judge::Judgement& b) {
  if (a.verdict != b.verdict || a.text != b.text) return "the verdicts differ";
  if (a.cases.size() != b.cases.size()) return "the cases differ";
  if (a.findings.size() != b.findings.size()) return "the findings differ";
  for (std::size_t i = 0; i < a.cases.size(); ++i) {
    const judge::CaseResult &x = a.cases[i], &y = b.cases[i];
    if (x.what.name != y.what.name || x.what.world != y.what.world ||
        x.what.params != y.what.params) {
      return "the cases differ";
    }
    if (x.isolated_ns != y.isolated_ns || x.call_ns != y.call_ns || x.moved != y.moved ||
        x.thread_instructions != y.thread_instructions) {
      return fmt::format("{} took {:.3f} ns per call and then {:.3f} ns", x.what.name, x.call_ns,
                         y.call_ns);
    }
  }
  return "";
}

}  // namespace allranks::cli
