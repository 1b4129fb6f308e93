// What models without a provider know of their replies: estimates, and files of JSON beside them.
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/local_models.h"

namespace allranks::model {

Usage EstimateUsage(const std::vector<Message>& messages, const std::string& reply) {
  std::size_t bytes = 0;
  for (const Message& message : messages) bytes += message.text.size();
  Usage usage;
  usage.input = (bytes + 3) / 4;
  usage.output = (reply.size() + 3) / 4;
  return usage;
}

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status TakeFacts(const std::string& json, Reply* reply) {
  const nlohmann::json facts = nlohmann::json::parse(json, nullptr, false);
  if (!facts.is_object()) return Fail("expected a JSON object");
  if (const auto finish = facts.find("finish"); finish != facts.end()) {
    bool known = false;
    for (const Finish one : {Finish::kStop, Finish::kLength, Finish::kRefused, Finish::kOther}) {
      if (*finish != NameOf(one)) continue;
      reply->finish = one;
      known = true;
    }
    if (!known) return Fail("\"finish\": expected stop, length, refused or other");
  }
  Usage usage;
  bool counted = false;
  for (const auto& [name, out] :
       {std::pair{"input_tokens", &usage.input}, std::pair{"output_tokens", &usage.output},
        std::pair{"cached_input_tokens", &usage.cached_input},
        std::pair{"reasoning_tokens", &usage.reasoning}}) {
    const auto value = facts.find(name);
    if (value == facts.end()) continue;
    // More than this would be no count, and sums of it could wrap.
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > 1'000'000'000'000)
      return Fail("\"{}\": expected a number of tokens", name);
    *out = value->get<std::uint64_t>();
    counted = true;
  }
  if (const auto dollars = facts.find("dollars"); dollars != facts.end()) {
    const double value = dollars->is_number() ? dollars->get<double>() : -1;
    if (!(value >= 0 && value <= 1e6)) return Fail("\"dollars\": expected an amount");
    reply->dollars = value;
  }
  if (!counted) return Ok();
  reply->usage = usage;
  const auto known = facts.find("usage_known");
  reply->usage_known = known == facts.end() || *known == true;
  return Ok();
}

}  // namespace allranks::model
