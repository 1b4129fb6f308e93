// summary.json. docs/scores.md describes it; a member that changes its meaning is a new
// kSummarySchema.
#include <nlohmann/json.hpp>

#include "report/summary.h"

namespace allranks::report {
namespace {

using Json = nlohmann::ordered_json;

Json Of(const Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

Json Of(const std::vector<Interval>& intervals) {
  Json list = Json::array();
  for (const Interval& interval : intervals) list.push_back(Of(interval));
  return list;
}

Json Of(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

template <class T>
Json Of(const std::map<std::string, T>& map) {
  Json object = Json::object();
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

Json Of(const std::map<int, double>& map) {
  Json object = Json::object();
  for (const auto& [k, value] : map) object[std::to_string(k)] = value;
  return object;
}

Json Of(const Figures& figures) {
  Json fast = Json::object();
  for (const auto& [least, at] : figures.fast) fast[least] = Of(at);
  return {{"problems", figures.problems},
          {"families", figures.families},
          {"samples", figures.samples},
          {"strict_pass", Of(figures.strict_pass)},
          {"score", Of(figures.score)},
          {"lenient_pass", Of(figures.lenient_pass)},
          {"pass_within", Of(figures.pass_within)},
          {"score_within", Of(figures.score_within)},
          {"pass_plus_good", figures.pass_plus_good},
          {"gm_speedup", Of(figures.gm_speedup)},
          {"pass_x_gm", figures.pass_x_gm},
          {"pass_at", Of(figures.pass_at)},
          {"fast", fast}};
}

Json Of(const campaign::Settings& run, const Options& options) {
  const auto validated = options.validated.find(run.profile);
  Json models = Json::array();
  for (const campaign::ModelFacts& facts : run.models) models.push_back(facts.name);
  return {{"name", run.name},
          {"version", run.version},
          {"judge", run.judge},
          {"profile",
           {{"name", run.profile},
            {"version", run.profile_version},
            {"hash", run.profile_hash},
            {"validated",
             validated == options.validated.end() ? Json(nullptr) : Json(validated->second)}}},
          {"prompt", {{"name", run.prompt}, {"hash", run.prompt_hash}}},
          {"samples", run.samples},
          {"rounds", run.rounds},
          {"band", run.band},
          {"target", run.target},
          {"models", models},
          {"problems", run.problems.size()}};
}

Json Of(const ModelSummary& model) {
  Json by = Json::object();
  for (const auto& [dimension, values] : model.by) {
    by[dimension] = Json::object();
    for (const auto& [value, figures] : values) by[dimension][value] = Of(figures);
  }
  Json verdicts_by_round = Json::array();
  for (const auto& verdicts : model.verdicts_by_round) verdicts_by_round.push_back(Of(verdicts));
  return {{"label", model.label},
          {"name", model.facts.name},
          {"run", model.run},
          {"run_index", model.run_index},
          {"protocol", model.facts.protocol},
          {"model", model.facts.model},
          {"open_weights", model.facts.open_weights},
          {"rank_group", model.rank_group},
          {"planned", model.planned},
          {"finished", model.finished},
          {"unfinished", model.unfinished},
          {"unsupported", model.unsupported},
          {"unsupported_rate", model.unsupported_rate},
          {"internal_errors", model.internal_errors},
          {"score_if_unsupported_fails", model.score_if_unsupported_fails},
          {"all", Of(model.all)},
          {"by", by},
          {"verdicts", Of(model.verdicts)},
          {"verdicts_by_round", verdicts_by_round},
          {"pass_within_round", Of(model.pass_within_round)},
          {"score_within_round", Of(model.score_within_round)},
          {"fast_reference",
           {{"step", 1.0 / kFastStepsPerUnit}, {"share", Json(model.fast_reference)}}},
          {"classes", Of(model.classes)},
          {"moved_bytes", Of(model.moved)},
          {"price_known", model.facts.price_known},
          {"dollars", model.dollars},
          {"dollars_per_problem", Of(model.dollars_per_problem)},
          {"dollars_per_pass", Of(model.dollars_per_pass)},
          {"usage",
           {{"input", model.usage.input},
            {"cached_input", model.usage.cached_input},
            {"output", model.usage.output},
            {"reasoning", model.usage.reasoning}}}};
}

Json Of(const ProblemSummary& problem) {
  Json models = Json::object();
  for (const auto& [label, cell] : problem.models)
    models[label] = {{"samples", cell.samples},
                     {"strict_pass", cell.strict_pass},
                     {"score", cell.score},
                     {"pass_within", cell.pass_within},
                     {"score_within", cell.score_within}};
  Json json = campaign::FactsJson<Json>(problem.facts);
  json["difficulty"] = Of(problem.difficulty);
  json["models"] = std::move(models);
  return json;
}

}  // namespace

std::string ToJson(const Summary& summary) {
  Json runs = Json::array(), models = Json::array(), pairs = Json::array(),
       problems = Json::array();
  for (const campaign::Settings& run : summary.runs) runs.push_back(Of(run, summary.options));
  for (const ModelSummary& model : summary.models) models.push_back(Of(model));
  for (const Pair& pair : summary.pairs)
    pairs.push_back({{"a", pair.a},
                     {"b", pair.b},
                     {"problems", pair.problems},
                     {"strict_pass", Of(pair.strict_pass)},
                     {"score", Of(pair.score)}});
  for (const ProblemSummary& problem : summary.problems) problems.push_back(Of(problem));
  const Json json = {{"schema", kSummarySchema},
                     {"title", summary.options.title},
                     {"times", summary.times},
                     {"notes", summary.notes},
                     {"bootstrap",
                      {{"confidence", 0.95},
                       {"resamples", summary.options.resamples},
                       {"seed", summary.options.seed}}},
                     {"panel", summary.options.panel},
                     {"dollars", summary.dollars},
                     {"dollars_elsewhere", summary.dollars_elsewhere},
                     {"runs", runs},
                     {"models", models},
                     {"pairs", pairs},
                     {"problems", problems}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace allranks::report
