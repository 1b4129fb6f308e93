#include "remedies/cure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "remedies/apply.h"

namespace allranks::remedies {
namespace {

using Json = nlohmann::json;

constexpr int kRounds = 3;

std::string Text(const Json& finding, const char* member) {
  const auto it = finding.find(member);
  return it != finding.end() && it->is_string() ? it->get<std::string>() : "";
}

bool HasEdits(const Json& finding) {
  const auto it = finding.find("edits");
  return it != finding.end() && it->is_array() && !it->empty();
}

// The remedy that is tried first: that of the first finding that has one.
void RemediesFirst(Json* findings) {
  std::stable_partition(findings->begin(), findings->end(), HasEdits);
}

std::string Describe(const Json& finding) {
  const std::string advice = Text(finding, "advice");
  return Text(finding, "kind") + ": " + (advice.empty() ? Text(finding, "text") : advice);
}

}  // namespace

Json Counted(const Json& report) {
  Json all = Json::array();
  if (!report.is_object() || !report.contains("findings")) return all;
  for (const Json& finding : report["findings"]) {
    const std::string kind = Text(finding, "kind");
    if (kind != "portability" && kind != "leak") all.push_back(finding);
  }
  return all;
}

Cure TryCure(const std::string& file, const std::string& text, const Judge& judge) {
  Trial trial = judge(text, true);
  Cure cure{"", "", trial.findings.size(), text};
  const auto end = [&](const char* word, const std::string& why) {
    cure.word = word;
    cure.text = why;
    return cure;
  };
  if (!trial.error.empty()) return end("not_built", trial.error);
  if (trial.findings.empty()) return end("not_found", trial.trouble);
  RemediesFirst(&trial.findings);
  const std::string what = Describe(trial.findings.front());
  if (!HasEdits(trial.findings.front())) return end("no_edit", what);
  // What is wrong at several places has a finding, and a remedy, for each.
  std::string left;
  for (int round = 0; round < kRounds && !trial.findings.empty(); ++round) {
    RemediesFirst(&trial.findings);
    const Json next = trial.findings.front();
    if (!HasEdits(next)) break;
    const Result<std::string> edited = Apply(next["edits"], file, cure.source);
    if (!edited) {
      if (round == 0) return end("not_applied", edited.error().message + "; " + what);
      break;
    }
    Trial now = judge(*edited, false);
    if (!now.error.empty()) {
      if (round > 0) break;
      cure.source = *edited;
      return end("not_applied", "does not compile: " + now.error.substr(0, 300) + "; " + what);
    }
    cure.source = *edited;
    trial = std::move(now);
    if (trial.Right() && round == 0) return end("cured", what);
    if (trial.Right())
      return end("cured_later", fmt::format("by {} remedies; {}", round + 1, what));
    left = trial.findings.empty() ? trial.trouble
                                  : trial.trouble + " " + Describe(trial.findings.front());
  }
  return end("not_cured", left + " // " + what);
}

void Tally::Add(const std::string& name, const std::string& group, const Cure& cure) {
  fmt::print("{:<28} {:<14} {:<12} {:>2} {}\n", name, group, cure.word, cure.findings, cure.text);
  std::fflush(stdout);
  ++words_[cure.word];
  ++groups_[group][cure.word];
  if (cure.findings > 0) counts_.push_back(cure.findings);
}

double Tally::Print() const {
  const auto of = [](const std::map<std::string, std::size_t>& words, const char* word) {
    const auto it = words.find(word);
    return it == words.end() ? std::size_t{0} : it->second;
  };
  const auto found = [&](const std::map<std::string, std::size_t>& words) {
    std::size_t sum = 0;
    for (const char* word : {"cured", "cured_later", "not_cured", "no_edit", "not_applied"})
      sum += of(words, word);
    return sum;
  };
  fmt::print("\n");
  for (const auto& [group, words] : groups_)
    if (found(words) > 0)
      fmt::print("{:<16} cured {} of {}\n", group, of(words, "cured"), found(words));
  fmt::print("\n");
  for (const auto& [word, count] : words_) fmt::print("{:<12} {}\n", word, count);
  const auto percent = [&](std::size_t of_all) {
    return of_all == 0
               ? 0.0
               : 100.0 * static_cast<double>(of(words_, "cured")) / static_cast<double>(of_all);
  };
  const std::size_t all = found(words_), edits = all - of(words_, "no_edit");
  fmt::print("cured of those found: {:.1f} % of {}; of those with an edit: {:.1f} % of {}\n",
             percent(all), all, percent(edits), edits);
  if (!counts_.empty()) {
    std::vector<std::size_t> counts = counts_;
    std::sort(counts.begin(), counts.end());
    fmt::print("findings of a bug: median {}, worst {}\n", counts[counts.size() / 2],
               counts.back());
  }
  // What could not be tried is not cured.
  return percent(all + of(words_, "not_found") + of(words_, "not_built"));
}

}  // namespace allranks::remedies
