// Records of a run as JSON and back. Members stand in a fixed order, numbers are exact, and reading
// is strict: a member that is missing or of another kind is an error that names it, so a file that
// was damaged or written by another version is never half believed.
#include "campaign/record.h"

#include <nlohmann/json.hpp>

namespace allranks::campaign {
namespace {

using Json = nlohmann::ordered_json;

std::string Print(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json JsonOf(const model::Usage& usage) {
  return {{"input", usage.input},
          {"cached_input", usage.cached_input},
          {"output", usage.output},
          {"reasoning", usage.reasoning}};
}

model::Usage UsageFrom(const Json& json) {
  model::Usage usage;
  json.at("input").get_to(usage.input);
  json.at("cached_input").get_to(usage.cached_input);
  json.at("output").get_to(usage.output);
  json.at("reasoning").get_to(usage.reasoning);
  return usage;
}

Json JsonOf(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

// Iterating over an empty object would not throw.
const Json::array_t& ArrayAt(const Json& json, const char* member) {
  return json.at(member).get_ref<const Json::array_t&>();
}

std::optional<double> OptionalFrom(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<double>();
}

Json JsonOf(const ModelFacts& facts) {
  return {{"name", facts.name},
          {"protocol", facts.protocol},
          {"model", facts.model},
          {"identity", facts.identity},
          {"open_weights", facts.open_weights},
          {"price_known", facts.price_known},
          {"input_price", facts.input_price},
          {"cached_input_price", facts.cached_input_price},
          {"output_price", facts.output_price}};
}

ModelFacts ModelFrom(const Json& json) {
  ModelFacts facts;
  json.at("name").get_to(facts.name);
  json.at("protocol").get_to(facts.protocol);
  json.at("model").get_to(facts.model);
  json.at("identity").get_to(facts.identity);
  json.at("open_weights").get_to(facts.open_weights);
  json.at("price_known").get_to(facts.price_known);
  json.at("input_price").get_to(facts.input_price);
  json.at("cached_input_price").get_to(facts.cached_input_price);
  json.at("output_price").get_to(facts.output_price);
  return facts;
}

ProblemFacts ProblemFrom(const Json& json) {
  ProblemFacts facts;
  ForEachFact(facts, [&](const char* name, auto& fact) { json.at(name).get_to(fact); });
  return facts;
}

Json JsonOf(const CaseFigures& one) {
  return {{"name", one.name},
          {"kind", one.kind},
          {"world", one.world},
          {"params", one.params},
          {"verdict", one.verdict},
          {"call_ns", one.call_ns},
          {"isolated_ns", one.isolated_ns},
          {"bytes", one.bytes},
          {"roofline_ns", one.roofline_ns},
          {"reference_ns", one.reference_ns},
          {"baseline_ns", one.baseline_ns},
          {"nccl_ns", one.nccl_ns},
          {"moved_bytes", one.moved}};
}

CaseFigures CaseFrom(const Json& json) {
  CaseFigures one;
  json.at("name").get_to(one.name);
  json.at("kind").get_to(one.kind);
  json.at("world").get_to(one.world);
  json.at("params").get_to(one.params);
  json.at("verdict").get_to(one.verdict);
  json.at("call_ns").get_to(one.call_ns);
  json.at("isolated_ns").get_to(one.isolated_ns);
  json.at("bytes").get_to(one.bytes);
  json.at("roofline_ns").get_to(one.roofline_ns);
  json.at("reference_ns").get_to(one.reference_ns);
  json.at("baseline_ns").get_to(one.baseline_ns);
  json.at("nccl_ns").get_to(one.nccl_ns);
  json.at("moved_bytes").get_to(one.moved);
  return one;
}

Json JsonOf(const Round& round) {
  Json cases = Json::array();
  for (const CaseFigures& one : round.cases) cases.push_back(JsonOf(one));
  return {{"schema", kRunSchema},
          {"round", round.round},
          {"key", round.key},
          {"kind", round.kind},
          {"finish", round.finish},
          {"answer", round.answer},
          {"usage", JsonOf(round.usage)},
          {"usage_known", round.usage_known},
          {"dollars", round.dollars},
          {"source_hash", round.source_hash},
          {"verdict", round.verdict},
          {"strict", round.strict},
          {"lenient", round.lenient},
          {"score", round.score},
          {"speedup_vs_reference", JsonOf(round.speedup_vs_reference)},
          {"speedup_vs_baseline", JsonOf(round.speedup_vs_baseline)},
          {"speedup_vs_nccl", JsonOf(round.speedup_vs_nccl)},
          {"text", round.text},
          {"band", round.band},
          {"cases", std::move(cases)}};
}

Round RoundOf(const Json& json) {
  Round round;
  json.at("round").get_to(round.round);
  json.at("key").get_to(round.key);
  json.at("kind").get_to(round.kind);
  json.at("finish").get_to(round.finish);
  json.at("answer").get_to(round.answer);
  round.usage = UsageFrom(json.at("usage"));
  json.at("usage_known").get_to(round.usage_known);
  json.at("dollars").get_to(round.dollars);
  json.at("source_hash").get_to(round.source_hash);
  json.at("verdict").get_to(round.verdict);
  json.at("strict").get_to(round.strict);
  json.at("lenient").get_to(round.lenient);
  json.at("score").get_to(round.score);
  round.speedup_vs_reference = OptionalFrom(json.at("speedup_vs_reference"));
  round.speedup_vs_baseline = OptionalFrom(json.at("speedup_vs_baseline"));
  round.speedup_vs_nccl = OptionalFrom(json.at("speedup_vs_nccl"));
  json.at("text").get_to(round.text);
  json.at("band").get_to(round.band);
  for (const Json& one : ArrayAt(json, "cases")) round.cases.push_back(CaseFrom(one));
  return round;
}

// What is inside a JSON text, by `make`; a message of the library's names the member.
template <class T, class Make>
Result<T> Read(const char* what, const std::string& text, Make make) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Fail("{}: not a JSON object", what);
  try {
    const int schema = json.at("schema").get<int>();
    if (schema != kRunSchema)
      return Fail("{}: unknown schema {}; this version reads {}: use the version that wrote it",
                  what, schema, kRunSchema);
    return make(json);
  } catch (const Json::exception& fault) {
    return Fail("{}: {}", what, fault.what());
  }
}

}  // namespace

std::string ToJson(const Settings& settings) {
  Json models = Json::array(), problems = Json::array();
  for (const ModelFacts& facts : settings.models) models.push_back(JsonOf(facts));
  for (const ProblemFacts& facts : settings.problems) problems.push_back(FactsJson<Json>(facts));
  return Print({{"schema", settings.schema},
                {"version", settings.version},
                {"judge", settings.judge},
                {"name", settings.name},
                {"seed", settings.seed},
                {"profile",
                 {{"name", settings.profile},
                  {"version", settings.profile_version},
                  {"hash", settings.profile_hash}}},
                {"prompt", {{"name", settings.prompt}, {"hash", settings.prompt_hash}}},
                {"temperature", JsonOf(settings.temperature)},
                {"few_shot", settings.few_shot},
                {"samples", settings.samples},
                {"rounds", settings.rounds},
                {"band", settings.band},
                {"target", settings.target},
                {"trace", settings.trace},
                {"models", std::move(models)},
                {"problems", std::move(problems)}});
}

Result<Settings> SettingsFrom(const std::string& json) {
  Result<Settings> read = Read<Settings>("run.json", json, [](const Json& from) {
    Settings settings;
    from.at("schema").get_to(settings.schema);
    from.at("version").get_to(settings.version);
    from.at("judge").get_to(settings.judge);
    from.at("name").get_to(settings.name);
    from.at("seed").get_to(settings.seed);
    from.at("profile").at("name").get_to(settings.profile);
    from.at("profile").at("version").get_to(settings.profile_version);
    from.at("profile").at("hash").get_to(settings.profile_hash);
    from.at("prompt").at("name").get_to(settings.prompt);
    from.at("prompt").at("hash").get_to(settings.prompt_hash);
    settings.temperature = OptionalFrom(from.at("temperature"));
    from.at("few_shot").get_to(settings.few_shot);
    from.at("samples").get_to(settings.samples);
    from.at("rounds").get_to(settings.rounds);
    from.at("band").get_to(settings.band);
    from.at("target").get_to(settings.target);
    from.at("trace").get_to(settings.trace);
    for (const Json& facts : ArrayAt(from, "models")) settings.models.push_back(ModelFrom(facts));
    for (const Json& facts : ArrayAt(from, "problems"))
      settings.problems.push_back(ProblemFrom(facts));
    return settings;
  });
  if (read &&
      (read->samples < 1 || read->samples > kMostSamples || read->rounds < 1 ||
       read->rounds > kMostRounds ||
       read->models.size() * read->problems.size() * static_cast<std::size_t>(read->samples) >
           kMostChains))
    return Fail("run.json: {} samples of {} rounds are not valid", read->samples, read->rounds);
  return read;
}

std::string ToJson(const Round& round) { return Print(JsonOf(round)); }

Result<Round> RoundFrom(const std::string& json) {
  return Read<Round>("round.json", json, RoundOf);
}

std::string ToJson(const Sample& sample) {
  Json rounds = Json::array();
  for (const Round& round : sample.rounds) rounds.push_back(JsonOf(round));
  return Print({{"schema", kRunSchema},
                {"model", sample.model},
                {"problem", sample.problem},
                {"sample", sample.sample},
                {"stopped", sample.stopped},
                {"rounds", std::move(rounds)}});
}

Result<Sample> SampleFrom(const std::string& json) {
  return Read<Sample>("sample.json", json, [](const Json& from) {
    Sample sample;
    from.at("model").get_to(sample.model);
    from.at("problem").get_to(sample.problem);
    from.at("sample").get_to(sample.sample);
    from.at("stopped").get_to(sample.stopped);
    for (const Json& round : ArrayAt(from, "rounds")) sample.rounds.push_back(RoundOf(round));
    return sample;
  });
}

}  // namespace allranks::campaign
