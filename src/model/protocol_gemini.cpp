// Gemini: https://ai.google.dev/api/generate-content and
// https://ai.google.dev/gemini-api/docs/thinking. A stream has no event that ends it: the last one
// has a finishReason.
#include <cctype>
#include <set>

#include "model/protocol_json.h"

namespace allranks::model {
namespace {

Finish FinishOf(const std::string& reason) {
  static const std::set<std::string> kRefused = {"SAFETY",      "RECITATION",         "LANGUAGE",
                                                 "BLOCKLIST",   "PROHIBITED_CONTENT", "SPII",
                                                 "IMAGE_SAFETY"};
  if (reason == "STOP") return Finish::kStop;
  if (reason == "MAX_TOKENS") return Finish::kLength;
  return kRefused.contains(reason) ? Finish::kRefused : Finish::kOther;
}

bool IsInteger(const std::string& text) {
  const std::size_t digits = text.starts_with('-') ? 1 : 0;
  return text.size() > digits && text.size() < 10 &&
         text.find_first_not_of("0123456789", digits) == std::string::npos;
}

class Reader : public JsonReader {
 protected:
  void Take(const Json& event) override {
    if (!At(event, {"error"}).is_null() && !reply_.complete) {
      reply_.error = ErrorFrom(event, 0);
      if (reply_.error->status == 0) reply_.error->status = 500;
      return;
    }
    const std::string model = TextAt(event, {"modelVersion"});
    if (!model.empty()) reply_.served_by = model;
    const Json& usage = At(event, {"usageMetadata"});
    if (usage.is_object()) {  // so far, in each event
      reply_.usage.input =
          CountAt(usage, {"promptTokenCount"}) + CountAt(usage, {"toolUsePromptTokenCount"});
      reply_.usage.cached_input =
          std::min(CountAt(usage, {"cachedContentTokenCount"}), reply_.usage.input);
      reply_.usage.reasoning = CountAt(usage, {"thoughtsTokenCount"});
      reply_.usage.output = CountAt(usage, {"candidatesTokenCount"}) + reply_.usage.reasoning;
      reply_.usage_known = true;
    }
    if (!TextAt(event, {"promptFeedback", "blockReason"}).empty()) {
      reply_.finish = Finish::kRefused;
      reply_.complete = true;
    }
    for (const Json& candidate : At(event, {"candidates"})) {
      if (CountAt(candidate, {"index"}) != 0) continue;
      for (const Json& part : At(candidate, {"content", "parts"})) {
        const Json& thought = At(part, {"thought"});
        if (thought.is_boolean() && thought.get<bool>())
          reply_.unseen_bytes += TextAt(part, {"text"}).size();
        else
          reply_.text += TextAt(part, {"text"});
      }
      const std::string reason = TextAt(candidate, {"finishReason"});
      if (!reason.empty() && reason != "FINISH_REASON_UNSPECIFIED") {
        reply_.finish = FinishOf(reason);
        reply_.complete = true;
      }
    }
  }

  void TakeWhole(const Json& document) override {
    Take(document);
    if (!reply_.settled()) reply_.broken = "the reply has no candidate with a finishReason";
  }
};

class Gemini : public WireProtocol {
 public:
  std::string Url(const Entry& entry) const override {
    // The name goes into the path: nothing in it may lead elsewhere.
    std::string name;
    for (const char c : entry.model.starts_with("models/") ? entry.model.substr(7) : entry.model) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_')
        name += c;
      else
        name += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return BaseOf(entry) + "/models/" + name +
           (entry.parameters.stream ? ":streamGenerateContent?alt=sse" : ":generateContent");
  }

  std::vector<std::string> Headers(const std::string& key) const override {
    if (key.empty()) return {};
    return {"x-goog-api-key: " + key};
  }

  std::string Body(const Entry& entry, const std::vector<Message>& messages) const override {
    const Parameters& parameters = entry.parameters;
    Json body = {{"contents", Json::array()},
                 {"generationConfig", {{"maxOutputTokens", parameters.max_output_tokens}}}};
    const auto parts = [](const std::string& text) { return Json::array({{{"text", text}}}); };
    const std::string system = SystemOf(messages);
    if (!system.empty()) body["systemInstruction"] = {{"parts", parts(system)}};
    for (const Message& message : messages) {
      if (message.role == Message::Role::kSystem || message.text.empty()) continue;
      const char* role = message.role == Message::Role::kAssistant ? "model" : "user";
      body["contents"].push_back({{"role", role}, {"parts", parts(message.text)}});
    }
    Json& config = body["generationConfig"];
    if (parameters.temperature) config["temperature"] = *parameters.temperature;
    if (parameters.top_p) config["topP"] = *parameters.top_p;
    // Gemini 3 has levels, 2.5 a number of tokens.
    if (IsInteger(parameters.effort))
      config["thinkingConfig"] = {{"thinkingBudget", std::stoi(parameters.effort)}};
    else if (!parameters.effort.empty())
      config["thinkingConfig"] = {{"thinkingLevel", parameters.effort}};
    return Finished(std::move(body), entry);
  }

  std::unique_ptr<ReplyReader> NewReader() const override { return std::make_unique<Reader>(); }
};

}  // namespace

const WireProtocol& GeminiProtocol() {
  static const Gemini kProtocol;
  return kProtocol;
}

}  // namespace allranks::model
