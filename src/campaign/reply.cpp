#include "campaign/reply.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "campaign/record.h"

namespace allranks::campaign {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kFinishes = {model::Finish::kStop, model::Finish::kLength,
                                  model::Finish::kRefused, model::Finish::kOther};

// Money of a file that may be damaged: never negative, never not a number.
double MoneyFrom(const Json& json, const char* member) {
  if (!json.is_object() || !json.contains(member) || !json[member].is_number()) return 0;
  const double dollars = json[member].get<double>();
  return std::isfinite(dollars) ? std::max(0.0, dollars) : 0;
}

// Text as a JSON string: itself, or, if it is no UTF-8, each byte as the character of its number,
// under another name.
void PutText(Json* json, const std::string& name, const std::string& text) {
  try {
    (void)Json(text).dump();
    (*json)[name] = text;
  } catch (const Json::exception&) {
    std::string wide;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80) {
        wide += c;
      } else {
        wide += static_cast<char>(0xc0 | byte >> 6);
        wide += static_cast<char>(0x80 | (byte & 0x3f));
      }
    }
    (*json)[name + "_bytes"] = wide;
  }
}

std::string TakeText(const Json& json, const std::string& name) {
  if (json.contains(name)) return json[name].get<std::string>();
  const std::string wide = json.at(name + "_bytes").get<std::string>();
  std::string text;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const auto lead = static_cast<unsigned char>(wide[i]);
    if (lead < 0x80 || i + 1 == wide.size()) {
      text += wide[i];
    } else {
      text += static_cast<char>((lead & 3) << 6 | (static_cast<unsigned char>(wide[++i]) & 0x3f));
    }
  }
  return text;
}

}  // namespace

std::string ToJson(const ReplyRecord& record) {
  Json json = {{"schema", kRunSchema},
               {"key", record.key},
               {"finish", model::NameOf(record.finish)},
               {"input_tokens", record.usage.input},
               {"cached_input_tokens", record.usage.cached_input},
               {"output_tokens", record.usage.output},
               {"reasoning_tokens", record.usage.reasoning},
               {"usage_known", record.usage_known},
               {"dollars", record.dollars},
               {"wasted_dollars", record.wasted_dollars},
               {"served_by", record.served_by},
               {"attempts", record.attempts}};
  PutText(&json, "text", record.text);
  PutText(&json, "request", record.request);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ReplyRecord> ReplyFrom(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Fail("reply.json: not a JSON object");
  try {
    if (json.at("schema").get<int>() != kRunSchema)
      return Fail("reply.json: unknown schema: use the version that wrote it");
    ReplyRecord record;
    json.at("key").get_to(record.key);
    const std::string finish = json.at("finish").get<std::string>();
    const auto* found = std::find_if(kFinishes.begin(), kFinishes.end(),
                                     [&](model::Finish one) { return finish == NameOf(one); });
    if (found == kFinishes.end()) return Fail("reply.json: unknown finish '{}'", finish);
    record.finish = *found;
    json.at("input_tokens").get_to(record.usage.input);
    json.at("cached_input_tokens").get_to(record.usage.cached_input);
    json.at("output_tokens").get_to(record.usage.output);
    json.at("reasoning_tokens").get_to(record.usage.reasoning);
    json.at("usage_known").get_to(record.usage_known);
    record.dollars = MoneyFrom(json, "dollars");
    record.wasted_dollars = MoneyFrom(json, "wasted_dollars");
    json.at("served_by").get_to(record.served_by);
    json.at("attempts").get_to(record.attempts);
    record.text = TakeText(json, "text");
    record.request = TakeText(json, "request");
    return record;
  } catch (const Json::exception& fault) {
    return Fail("reply.json: {}", fault.what());
  }
}

Spent SpentInRound(const std::filesystem::path& folder) {
  Spent spent;
  double replied = 0;
  if (const Result<std::string> text = ReadWhole(folder / "reply.json")) {
    const Json json = Json::parse(*text, nullptr, false);
    replied = MoneyFrom(json, "dollars") + MoneyFrom(json, "wasted_dollars");
  }
  if (const Result<std::string> text = ReadWhole(folder / "attempts.jsonl")) {
    double open = 0;  // of an attempt that has begun; one follows the other
    for (std::size_t at = 0; at < text->size();) {
      const std::size_t end = std::min(text->find('\n', at), text->size());
      const Json line = Json::parse(text->substr(at, end - at), nullptr, false);
      at = end + 1;
      if (!line.is_object()) continue;
      const bool begins = line.value("event", Json()) == "begin";
      if (begins) spent.perhaps += open;
      open = begins ? MoneyFrom(line, "most") : 0;
      spent.known += MoneyFrom(line, "dollars");
    }
    spent.perhaps += open;
  }
  spent.known = std::max(spent.known, replied);
  return spent;
}

Spent SpentInRun(const std::filesystem::path& run) {
  Spent spent;
  std::error_code error;
  std::filesystem::recursive_directory_iterator at(run / "samples", error), end;
  while (!error && at != end) {
    const std::filesystem::path& path = at->path();
    if (path.filename().string().starts_with("round-") && at->is_directory(error)) {
      const Spent round = SpentInRound(path);
      spent.known += round.known;
      spent.perhaps += round.perhaps;
      at.disable_recursion_pending();
    }
    at.increment(error);
  }
  return spent;
}

}  // namespace allranks::campaign
