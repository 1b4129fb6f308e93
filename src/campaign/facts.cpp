// What a record says of a problem, and of a judgement.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "campaign/record.h"
#include "judge/report.h"
#include "judge/scratch.h"
#include "problem/lock.h"
#include "problem/source.h"

namespace allranks::campaign {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestText = 2000;

// A file that is not there differs from an empty one.
std::string Content(const std::filesystem::path& file) {
  const Result<std::string> text = ReadWhole(file);
  return text ? "+" + *text : "-";
}

std::string Shorter(const std::string& text) {
  if (text.size() <= kLongestText) return text;
  std::size_t end = kLongestText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + " [...]";
}

double NumberOr0(const Json& json, const char* member) {
  const auto found = json.find(member);
  if (found == json.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return std::isfinite(value) ? value : 0;
}

std::optional<double> PositiveFrom(const Json& json, const char* member) {
  const double value = NumberOr0(json, member);
  return value > 0 ? std::optional<double>(value) : std::nullopt;
}

// The geometric mean over timed cases of how much faster than `other` they are.
std::optional<double> Speedup(const std::vector<CaseFigures>& cases, double CaseFigures::* other) {
  double sum = 0;
  int count = 0;
  for (const CaseFigures& one : cases) {
    if (one.kind != "timed" || !(one.call_ns > 0) || !(one.*other > 0)) continue;
    sum += std::log(one.*other / one.call_ns);
    ++count;
  }
  return count > 0 ? std::optional<double>(std::exp(sum / count)) : std::nullopt;
}

CaseFigures FiguresFrom(const Json& json) {
  CaseFigures one;
  json.at("name").get_to(one.name);
  json.at("kind").get_to(one.kind);
  json.at("world").get_to(one.world);
  json.at("params").get_to(one.params);
  if (!json.at("verdict").is_null()) json.at("verdict").get_to(one.verdict);
  one.call_ns = NumberOr0(json, "call_ns");
  one.isolated_ns = NumberOr0(json, "isolated_ns");
  one.bytes = NumberOr0(json, "bytes");
  one.roofline_ns = NumberOr0(json, "roofline_ns");
  one.reference_ns = NumberOr0(json, "reference_ns");
  one.baseline_ns = NumberOr0(json, "baseline_ns");
  one.nccl_ns = NumberOr0(json, "nccl_ns");
  json.at("moved_bytes").get_to(one.moved);
  return one;
}

std::vector<double> BandFrom(const Json& json) {
  const auto found = json.find("band");
  if (found == json.end() || !found->is_object()) return {};
  return found->at("speedup_vs_reference").get<std::vector<double>>();
}

}  // namespace

ProblemFacts FactsOf(const problem::Problem& problem) {
  ProblemFacts facts;
  facts.slug = problem.slug;
  facts.title = problem.title;
  facts.category = problem.category;
  facts.level = problem.level;
  facts.library = problem.library;
  facts.family = problem.family;
  facts.split = problem::NameOf(problem.split);
  facts.parallelism = problem.parallelism;
  const std::filesystem::path& folder = problem.folder;
  facts.hash =
      judge::HashOf({Content(folder / "statement.md"), problem::TemplateOf(problem).value_or(""),
                     Content(folder / "problem.toml"), Content(folder / "oracle.cpp"),
                     Content(problem::LockPath(problem)), problem.variant});
  return facts;
}

Status TakeVerdict(const std::string& judge_json, Round* round) {
  const Json json = Json::parse(judge_json, nullptr, false);
  if (!json.is_object()) return Fail("the judge's output is not a JSON object");
  try {
    const int schema = json.at("schema").get<int>();
    if (schema != judge::kReportSchema)
      return Fail("the judge's JSON has schema {}, not {}", schema, judge::kReportSchema);
    if (json.value("trusted", false))
      return Fail("this was judged without sandboxes (judge --trusted): no run accepts it");
    Round taken = *round;
    json.at("verdict").get_to(taken.verdict);
    const bool pass = json.at("pass").get<bool>();
    taken.strict = json.value("strict", pass);
    taken.lenient = json.value("lenient", pass);
    taken.score = taken.strict ? NumberOr0(json, "score") : 0;
    taken.text = Shorter(json.at("text").get<std::string>());
    taken.cases.clear();
    for (const Json& one : json.at("cases")) taken.cases.push_back(FiguresFrom(one));
    taken.speedup_vs_reference = PositiveFrom(json, "speedup_vs_reference");
    taken.speedup_vs_baseline = PositiveFrom(json, "speedup_vs_baseline");
    taken.speedup_vs_nccl = PositiveFrom(json, "speedup_vs_nccl");
    if (!taken.speedup_vs_reference && taken.strict)
      taken.speedup_vs_reference = Speedup(taken.cases, &CaseFigures::reference_ns);
    if (!taken.speedup_vs_baseline && taken.strict)
      taken.speedup_vs_baseline = Speedup(taken.cases, &CaseFigures::baseline_ns);
    taken.band = BandFrom(json);
    *round = std::move(taken);
    return Ok();
  } catch (const Json::exception& fault) {
    return Fail("the judge's JSON: {}", fault.what());
  }
}

}  // namespace allranks::campaign
