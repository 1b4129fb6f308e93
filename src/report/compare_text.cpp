// A comparison for people and for machines. docs/scores.md describes the JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/compare.h"
#include "report/table.h"

namespace allranks::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCompareSchema = 1;
constexpr std::size_t kName = 40;

Json Of(const Compared::Signs& signs) {
  return {{"better", signs.better}, {"worse", signs.worse}, {"equal", signs.equal}, {"p", signs.p}};
}

std::string Points(double difference) { return fmt::format("{:+.1f}", difference * 100); }

// Four digits, so that no p of the test that is below 0.05 is shown as 0.05.
std::string ShownP(double p) { return p < 0.001 ? "< 0.001" : fmt::format("{:.4g}", p); }

std::string PIs(double p) { return (p < 0.001 ? "p " : "p = ") + ShownP(p); }

std::string Sentence(const Compared& pair, const Compared::Row& row) {
  const std::string by = fmt::format("{} points [{}, {}]", Points(row.difference.value),
                                     Points(row.difference.low), Points(row.difference.high));
  if (row.word == "too few families")
    return fmt::format(
        "{}: B ({}) - A ({}) is {}, {}. {} too few: with fewer than {}, p cannot be below 0.05.",
        NameOf(row.metric), Shown(pair.model_b, kName), Shown(pair.model_a, kName), by, PIs(row.p),
        pair.families == 1 ? "One family is" : fmt::format("{} families are", pair.families),
        kFewestFamilies);
  if (row.word == "no difference shown")
    return fmt::format("{}: no difference between B ({}) and A ({}) is shown: {}, {}.",
                       NameOf(row.metric), Shown(pair.model_b, kName), Shown(pair.model_a, kName),
                       by, PIs(row.p));
  return fmt::format("{}: B ({}) is {} than A ({}) by {}, {}.", NameOf(row.metric),
                     Shown(pair.model_b, kName), row.word, Shown(pair.model_a, kName), by,
                     PIs(row.p));
}

std::string Of(const Compared::Signs& signs, const char* what) {
  return fmt::format("  by {:<8} {:>3} better, {:>3} worse, {:>3} equal, {}\n", what, signs.better,
                     signs.worse, signs.equal, PIs(signs.p));
}

std::string TableOf(const Compared& pair) {
  std::string out = fmt::format(
      "A {} ({}), B {} ({}): {} of {}\n", Shown(pair.model_a, kName),
      Counted(pair.samples_a, "sample", "samples"), Shown(pair.model_b, kName),
      Counted(pair.samples_b, "sample", "samples"), Counted(pair.problems, "problem", "problems"),
      Counted(pair.families, "family", "families"));
  if (pair.only_a + pair.only_b + pair.reworded > 0)
    out += fmt::format("  excluded: {} problems only in A, {} only in B, {} in another wording\n",
                       pair.only_a, pair.only_b, pair.reworded);
  if (pair.problems == 0) return out + "  nothing to compare\n";
  TextTable metrics;
  metrics.left = "ag";
  metrics.rows.push_back({"metric", "A %", "B %", "B - A", "95 % interval", "p", ""});
  for (const Compared::Row& row : pair.metrics)
    metrics.rows.push_back(
        {NameOf(row.metric), Percent(row.a), Percent(row.b), Points(row.difference.value),
         fmt::format("[{}, {}]", Points(row.difference.low), Points(row.difference.high)),
         ShownP(row.p), row.word});
  out += "\n" + Render(metrics) + "\n";
  out += "Sign tests of pass@1 (by problem: if problems were independent)\n" +
         Of(pair.by_problem, "problem") + Of(pair.by_family, "family");
  out += "\n";
  for (const Compared::Row& row : pair.metrics)
    if (row.metric == Metric::kScore || row.metric == Metric::kStrictPass)
      out += Wrapped(Sentence(pair, row), 100, "");
  if (pair.different.empty()) return out + "\nNo problem differs.\n";
  TextTable problems;
  problems.left = "ab";
  problems.rows.push_back(
      {"problem", "family", "pass@1 A", "B", "score A", "B", "B - A", "within rounds A", "B"});
  for (const Compared::Problem& row : pair.different)
    problems.rows.push_back({Shown(row.slug, kName), Shown(row.family, kName), Percent(row.pass_a),
                             Percent(row.pass_b), Percent(row.score_a), Percent(row.score_b),
                             Points(row.score_b - row.score_a), Percent(row.within_a),
                             Percent(row.within_b)});
  return out +
         fmt::format("\n{} of {} problems differ (%):\n", pair.different.size(), pair.problems) +
         Render(problems);
}

}  // namespace

std::string ToTable(const Comparison& comparison) {
  std::string out = fmt::format("A: {}   B: {}   every difference is B - A\n\n",
                                Shown(comparison.a.name, kName), Shown(comparison.b.name, kName));
  for (const Compared& pair : comparison.pairs) out += TableOf(pair) + "\n";
  out += Wrapped(fmt::format("Intervals: 95 %, over families, paired by problem; p: sign-flip test "
                             "over families. Times are modelled on profile {}{}.",
                             Shown(comparison.a.profile, kName),
                             comparison.a.profile_hash == comparison.b.profile_hash
                                 ? ""
                                 : " (A) and " + Shown(comparison.b.profile, kName) + " (B)"),
                 100, "");
  for (const std::string& note : comparison.notes) out += Wrapped("Note: " + note, 100, "");
  return out;
}

std::string ToJson(const Comparison& comparison) {
  const auto run = [](const campaign::Settings& settings) {
    return Json{{"run", settings.name},
                {"profile", settings.profile},
                {"profile_version", settings.profile_version},
                {"profile_hash", settings.profile_hash},
                {"prompt", settings.prompt},
                {"prompt_hash", settings.prompt_hash},
                {"samples", settings.samples},
                {"rounds", settings.rounds}};
  };
  Json pairs = Json::array();
  for (const Compared& pair : comparison.pairs) {
    Json metrics = Json::object(), different = Json::array();
    for (const Compared::Row& row : pair.metrics)
      metrics[NameOf(row.metric)] = {{"a", row.a},
                                     {"b", row.b},
                                     {"difference", row.difference.value},
                                     {"low", row.difference.low},
                                     {"high", row.difference.high},
                                     {"p", row.p},
                                     {"b_is", row.word},
                                     {"sentence", Sentence(pair, row)}};
    for (const Compared::Problem& row : pair.different)
      different.push_back({{"problem", row.slug},
                           {"family", row.family},
                           {"strict_pass", {{"a", row.pass_a}, {"b", row.pass_b}}},
                           {"score", {{"a", row.score_a}, {"b", row.score_b}}},
                           {"pass_within", {{"a", row.within_a}, {"b", row.within_b}}}});
    pairs.push_back(
        {{"model_a", pair.model_a},
         {"model_b", pair.model_b},
         {"problems", pair.problems},
         {"families", pair.families},
         {"samples_a", pair.samples_a},
         {"samples_b", pair.samples_b},
         {"only_a", pair.only_a},
         {"only_b", pair.only_b},
         {"reworded", pair.reworded},
         {"metrics", metrics},
         {"sign_test", {{"by_problem", Of(pair.by_problem)}, {"by_family", Of(pair.by_family)}}},
         {"different", different}});
  }
  const Json json = {{"schema", kCompareSchema},
                     {"a", run(comparison.a)},
                     {"b", run(comparison.b)},
                     {"bootstrap",
                      {{"confidence", 0.95},
                       {"resamples", comparison.bootstrap.resamples},
                       {"seed", comparison.bootstrap.seed}}},
                     {"notes", comparison.notes},
                     {"pairs", pairs}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace allranks::report
