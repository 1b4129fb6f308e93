// Sentences for people. A mixture of runs is never silent: each way in which runs differ is named
// with what it means for the ranks.
#include "report/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "report/table.h"

namespace allranks::report {
namespace {

constexpr int kFewProblems = 30;
constexpr std::size_t kLongestName = 80;  // characters of a name that a file gives

using campaign::Settings;

// Different values of a setting over runs, each as `show` names it, in order of appearance.
std::vector<std::string> Different(const std::vector<Settings>& runs,
                                   const std::function<std::string(const Settings&)>& identity,
                                   const std::function<std::string(const Settings&)>& show) {
  std::set<std::string> seen;
  std::vector<std::string> names;
  for (const Settings& run : runs)
    if (seen.insert(identity(run)).second)
      names.push_back(Shown(show(run), kLongestName) + " in " + Shown(run.name, kLongestName));
  return names;
}

std::string Short(const std::string& hash) { return Clean(hash.substr(0, 12)); }

std::string Profile(const Settings& run) {
  return fmt::format("{} version {} ({})", run.profile, run.profile_version,
                     Short(run.profile_hash));
}

std::string Prompt(const Settings& run) {
  return fmt::format("{} ({})", run.prompt, Short(run.prompt_hash));
}

// Slugs and hashes: what was asked.
std::set<std::pair<std::string, std::string>> Asked(const Settings& run) {
  std::set<std::pair<std::string, std::string>> asked;
  for (const campaign::ProblemFacts& facts : run.problems) asked.emplace(facts.slug, facts.hash);
  return asked;
}

}  // namespace

std::vector<std::string> Mixtures(const std::vector<Settings>& runs, const std::string& profiles) {
  std::vector<std::string> notes;
  const auto add = [&](const std::function<std::string(const Settings&)>& identity,
                       const std::function<std::string(const Settings&)>& show, const char* what,
                       const std::string& consequence) {
    const std::vector<std::string> names = Different(runs, identity, show);
    if (names.size() > 1)
      notes.push_back(fmt::format("The runs have different {}: {}. {}", what,
                                  fmt::join(names, ", "), consequence));
  };
  add([](const Settings& run) { return run.profile_hash; }, Profile, "profiles", profiles);
  add([](const Settings& run) { return run.prompt_hash; }, Prompt, "prompts",
      "A difference between their models may come from the prompt.");
  const auto judge = [](const Settings& run) {
    return fmt::format("{} ({})", run.version, Short(run.judge));
  };
  add([](const Settings& run) { return run.version + " " + run.judge; }, judge, "judges",
      "A difference between their models may come from the judge.");
  const auto rounds = [](const Settings& run) {
    return fmt::format("{} rounds up to {:g} of the roofline", run.rounds, run.target);
  };
  add(rounds, rounds, "rounds", "Only figures of round 1 are comparable.");
  std::set<std::string> seeds;
  for (const Settings& run : runs) seeds.insert(run.seed);
  if (seeds.size() > 1)
    notes.emplace_back(
        "The runs have different seeds: their drawn cases differ, which adds noise to "
        "differences.");
  std::set<std::set<std::pair<std::string, std::string>>> asked;
  for (const Settings& run : runs) asked.insert(Asked(run));
  if (asked.size() > 1)
    notes.push_back(
        "The runs did not ask the same problems in the same wording: scores are over different "
        "sets, and pairs and rank groups compare only the problems that two models have in "
        "common.");
  return notes;
}

std::vector<std::string> TimesOf(const Summary& summary) {
  std::vector<std::string> times;
  std::set<std::string> seen;
  for (const Settings& run : summary.runs) {
    if (!seen.insert(run.profile_hash).second) continue;
    const auto found = summary.options.validated.find(run.profile);
    const std::string word = found == summary.options.validated.end() ? "" : found->second;
    const char* how =
        word == "fitted" ? "fitted to published measurements"
        : word == "rough"
            ? "rough: its constants have the right magnitude; few are compared with measurements"
        : word == "untested" ? "untested: never compared with measurements"
                             : "not known here to have been validated";
    times.push_back(fmt::format(
        "Times are modelled on profile {} version {} ({}), never measured on hardware. The profile "
        "is {}.",
        Shown(run.profile, kLongestName), run.profile_version, Short(run.profile_hash), how));
    if (!summary.options.held_out.empty())
      times.back() += fmt::format(" Held-out error of the model: {}.", summary.options.held_out);
  }
  return times;
}

std::vector<std::string> NotesOf(const Summary& summary) {
  std::vector<std::string> notes =
      Mixtures(summary.runs, "Models are ranked and paired within a profile only.");
  int planned = 0, unfinished = 0, unsupported = 0, internal = 0, most = 0, families = 0;
  int classes = 0, unresolved = 0, later = 0;
  for (const ModelSummary& model : summary.models) {
    planned += model.planned;
    unfinished += model.unfinished;
    unsupported += model.unsupported;
    internal += model.internal_errors;
    for (std::size_t r = 1; r < model.verdicts_by_round.size(); ++r)
      if (const auto found = model.verdicts_by_round[r].find("internal_error");
          found != model.verdicts_by_round[r].end())
        later += found->second;
    if (model.all.problems >= most) {
      most = model.all.problems;
      families = model.all.families;
    }
    for (const auto& [name, count] : model.classes) {
      classes += count;
      if (name == "unresolved") unresolved += count;
    }
  }
  if (unfinished > 0)
    notes.push_back(fmt::format(
        "{} of {} samples are unfinished and not counted: the figures change when the same "
        "`allranks run` finishes them.",
        unfinished, planned));
  if (internal > 0)
    notes.push_back(
        fmt::format("Not counted, because of internal_error (a failure of AllRanks): {}.",
                    Counted(internal, "sample", "samples")));
  if (later > 0)
    notes.push_back(
        fmt::format("Without effect, because of internal_error: {}; a sample keeps its best round.",
                    Counted(later, "later round", "later rounds")));
  if (unsupported > 0)
    notes.push_back(fmt::format(
        "Not counted, because unsupported (the node lacks a feature that they use): {}.",
        Counted(unsupported, "sample", "samples")));
  if (most > 0 && most < kFewProblems)
    notes.push_back(fmt::format(
        "{} of {} are too few to rank models: see the width of the intervals.{}",
        Counted(most, "problem", "problems"), Counted(families, "family", "families"),
        families < kFewestFamilies
            ? fmt::format(" Fewer than {} families cannot show any difference.", kFewestFamilies)
            : ""));
  const bool band = std::any_of(summary.runs.begin(), summary.runs.end(),
                                [](const Settings& run) { return run.band > 0; });
  if (classes > 0 && unresolved == classes && !band)
    notes.emplace_back(
        "Performance classes are unresolved: no perturbed profiles were run (`allranks run "
        "--band`).");
  return notes;
}

}  // namespace allranks::report
