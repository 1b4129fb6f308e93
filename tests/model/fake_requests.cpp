// What a request must look like, by each provider's documentation.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "fake_wire.h"

namespace allranks::model::testing {
namespace {

using Json = nlohmann::json;
using Check = std::function<std::string(const Json&)>;  // what is wrong; empty: nothing

Check Expect(const char* what, std::function<bool(const Json&)> holds) {
  return [=](const Json& value) { return holds(value) ? std::string() : std::string(what); };
}
Check Text() {
  return Expect("a string with something in it",
                [](const Json& v) { return v.is_string() && !v.get<std::string>().empty(); });
}
Check Bool() {
  return Expect("a boolean", [](const Json& v) { return v.is_boolean(); });
}
Check Is(Json expected) {
  return [=](const Json& v) { return v == expected ? std::string() : "not " + expected.dump(); };
}
Check Positive() {
  return Expect("a positive integer",
                [](const Json& v) { return v.is_number_unsigned() && v.get<unsigned long>() > 0; });
}
Check Integer() {
  return Expect("an integer", [](const Json& v) { return v.is_number_integer(); });
}
Check Between(double low, double high) {
  return Expect("a number in range", [=](const Json& v) {
    return v.is_number() && v.get<double>() >= low && v.get<double>() <= high;
  });
}
Check OneOf(std::vector<std::string> words) {
  return Expect("one of the documented words", [=](const Json& v) {
    return v.is_string() && std::count(words.begin(), words.end(), v.get<std::string>()) > 0;
  });
}

struct Member {
  const char* name;
  bool required;
  Check check;
};

// An object with these members and no others.
Check Object(std::vector<Member> members) {
  return [=](const Json& value) -> std::string {
    if (!value.is_object()) return "no object";
    for (const auto& [name, part] : value.items())
      if (std::none_of(members.begin(), members.end(),
                       [&](const Member& m) { return name == m.name; }))
        return "unknown member " + name;
    for (const Member& member : members) {
      const auto found = value.find(member.name);
      if (found == value.end()) {
        if (member.required) return std::string("no ") + member.name;
        continue;
      }
      const std::string wrong = member.check(*found);
      if (!wrong.empty()) return std::string(member.name) + ": " + wrong;
    }
    return "";
  };
}

Check Each(Check check) {
  return [=](const Json& value) -> std::string {
    if (!value.is_array() || value.empty()) return "no array with something in it";
    for (const Json& part : value)
      if (std::string wrong = check(part); !wrong.empty()) return wrong;
    return "";
  };
}

const Check& BodyCheck(Wire wire) {
  // https://platform.openai.com/docs/api-reference/responses/create
  static const Check kResponses = Object({
      {"model", true, Text()},
      {"input", true,
       Each(Object({{"role", true, OneOf({"user", "assistant", "system", "developer"})},
                    {"content", true, Text()}}))},
      {"instructions", false, Text()},
      {"max_output_tokens", false, Positive()},
      {"temperature", false, Between(0, 2)},
      {"top_p", false, Between(0, 1)},
      {"reasoning", false,
       Object({{"effort", false, OneOf({"none", "minimal", "low", "medium", "high", "xhigh"})},
               {"summary", false, OneOf({"auto", "concise", "detailed"})}})},
      {"text", false, Object({{"verbosity", false, OneOf({"low", "medium", "high"})}})},
      {"store", true, Is(false)},  // the default is true: prompts would stay there
      {"stream", false, Bool()},
      {"service_tier", false, Text()},
  });
  // https://platform.openai.com/docs/api-reference/chat/create
  static const Check kChat = Object({
      {"model", true, Text()},
      {"messages", true,
       Each(Object({{"role", true, OneOf({"system", "user", "assistant", "developer"})},
                    {"content", true, Text()}}))},
      {"max_tokens", false, Positive()},
      {"max_completion_tokens", false, Positive()},
      {"temperature", false, Between(0, 2)},
      {"top_p", false, Between(0, 1)},
      {"reasoning_effort", false, OneOf({"none", "minimal", "low", "medium", "high", "xhigh"})},
      {"stream", false, Bool()},
      {"stream_options", false, Object({{"include_usage", false, Bool()}})},
      {"seed", false, Integer()},
  });
  // https://platform.claude.com/docs/en/api/messages/create, .../build-with-claude/effort,
  // .../build-with-claude/adaptive-thinking
  static const Check kAnthropic = Object({
      {"model", true, Text()},
      {"max_tokens", true, Positive()},
      {"messages", true,
       Each(Object({{"role", true, OneOf({"user", "assistant"})}, {"content", true, Text()}}))},
      {"system", false, Text()},
      {"temperature", false, Between(0, 1)},
      {"top_p", false, Between(0, 1)},
      {"stream", false, Bool()},
      {"thinking", false,
       Object({{"type", true, OneOf({"adaptive", "enabled", "disabled"})},
               {"budget_tokens", false, Positive()}})},
      {"output_config", false,
       Object({{"effort", false, OneOf({"low", "medium", "high", "xhigh", "max"})}})},
  });
  // https://ai.google.dev/api/generate-content, https://ai.google.dev/gemini-api/docs/thinking
  static const Check kParts = Each(Object({{"text", true, Text()}}));
  static const Check kGemini = Object({
      {"contents", true,
       Each(Object({{"role", true, OneOf({"user", "model"})}, {"parts", true, kParts}}))},
      {"systemInstruction", false, Object({{"parts", true, kParts}})},
      {"generationConfig", false,
       Object({{"maxOutputTokens", false, Positive()},
               {"temperature", false, Between(0, 2)},
               {"topP", false, Between(0, 1)},
               {"seed", false, Integer()},
               {"thinkingConfig", false,
                Object({{"thinkingBudget", false, Integer()},
                        {"thinkingLevel", false, OneOf({"minimal", "low", "medium", "high"})},
                        {"includeThoughts", false, Bool()}})}})},
  });
  static const Check kNone = Expect("a known path", [](const Json&) { return false; });
  switch (wire) {
    case Wire::kResponses:
      return kResponses;
    case Wire::kChat:
      return kChat;
    case Wire::kAnthropic:
      return kAnthropic;
    case Wire::kGemini:
      return kGemini;
    case Wire::kNone:
      break;
  }
  return kNone;
}

std::string HeaderOf(const Seen& seen, const char* name) {
  const auto found = seen.headers.find(name);
  return found == seen.headers.end() ? "" : found->second;
}

}  // namespace

std::string RequestFault(const Seen& seen) {
  if (seen.method != "POST") return "not a POST";
  if (HeaderOf(seen, "content-type") != "application/json") return "no JSON by its header";
  if (seen.wire == Wire::kNone) return "unknown path " + seen.target;
  // https://platform.claude.com/docs/en/api/versioning
  if (seen.wire == Wire::kAnthropic && HeaderOf(seen, "anthropic-version") != "2023-06-01")
    return "no anthropic-version";
  const Json body = Json::parse(seen.body, nullptr, false);
  if (body.is_discarded()) return "the body is not JSON";
  if (std::string wrong = BodyCheck(seen.wire)(body); !wrong.empty()) return wrong;
  // https://platform.claude.com/docs/en/build-with-claude/extended-thinking: no temperature with it
  if (seen.wire == Wire::kAnthropic && body.contains("thinking") && body.contains("temperature"))
    return "a temperature where the model thinks";
  if (seen.wire == Wire::kChat) {
    if (body.contains("max_tokens") && body.contains("max_completion_tokens"))
      return "two limits of tokens";
    if (body.contains("stream_options") && !body.value("stream", false))
      return "stream_options without stream";
  }
  if (seen.wire == Wire::kGemini &&
      body.contains("/generationConfig/thinkingConfig"_json_pointer)) {
    const Json& thinking = body["generationConfig"]["thinkingConfig"];
    if (thinking.contains("thinkingBudget") && thinking.contains("thinkingLevel"))
      return "a budget and a level of thinking";
  }
  return "";
}

}  // namespace allranks::model::testing
