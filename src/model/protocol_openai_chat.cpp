// Chat Completions: https://platform.openai.com/docs/api-reference/chat and what xAI, DeepSeek,
// GLM, Qwen, Kimi, Together, vLLM, SGLang, Ollama and llama.cpp made of it.
#include <map>

#include "model/protocol_json.h"

namespace allranks::model {
namespace {

Usage UsageFrom(const Json& usage) {
  Usage read;
  read.input = CountAt(usage, {"prompt_tokens"});
  read.output = CountAt(usage, {"completion_tokens"});
  read.cached_input = CountAt(usage, {"prompt_tokens_details", "cached_tokens"});
  if (read.cached_input == 0)  // DeepSeek
    read.cached_input = CountAt(usage, {"prompt_cache_hit_tokens"});
  if (read.cached_input == 0)  // Kimi
    read.cached_input = CountAt(usage, {"cached_tokens"});
  read.cached_input = std::min(read.cached_input, read.input);
  read.reasoning = CountAt(usage, {"completion_tokens_details", "reasoning_tokens"});
  // xAI and Gemini's compatible endpoint leave reasoning out of completion_tokens and charge for
  // it: the total tells.
  const std::uint64_t total = CountAt(usage, {"total_tokens"});
  if (read.reasoning > 0 && total == read.input + read.output + read.reasoning)
    read.output += read.reasoning;
  read.reasoning = std::min(read.reasoning, read.output);
  return read;
}

// A string, or (Mistral) an array of parts of which some are reasoning.
std::string ContentOf(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (content.is_array())
    for (const Json& part : content)
      if (TextAt(part, {"type"}) == "text") text += TextAt(part, {"text"});
  return text;
}

class Reader : public JsonReader {
 protected:
  bool IsEnd(std::string_view data) override {
    if (data != "[DONE]") return false;
    if (!reply_.complete && reply_.broken.empty() && !reply_.error)
      reply_.broken = "the stream ended without a finish_reason";
    return true;
  }

  void Take(const Json& event) override { Read(event, "delta"); }

  void TakeWhole(const Json& document) override {
    Read(document, "message");
    if (!reply_.settled()) reply_.broken = "the reply has no choice with a finish_reason";
  }

 private:
  void Read(const Json& chunk, const char* part) {
    if (!At(chunk, {"error"}).is_null() || TextAt(chunk, {"object"}) == "error")
      return Fail(ErrorFrom(chunk, 0));
    const std::string model = TextAt(chunk, {"model"});
    if (!model.empty()) reply_.served_by = model;
    const Json& usage = At(chunk, {"usage"});
    if (usage.is_object()) {
      reply_.usage = UsageFrom(usage);
      reply_.usage_known = true;
    }
    for (const Json& choice : At(chunk, {"choices"})) {
      if (CountAt(choice, {"index"}) != 0) continue;
      const Json& message = At(choice, {part});
      if (!reply_.complete) {
        reply_.text += ContentOf(At(message, {"content"}));
        reply_.unseen_bytes +=
            TextAt(message, {"reasoning_content"}).size() + TextAt(message, {"reasoning"}).size();
        const std::string refusal = TextAt(message, {"refusal"});
        refused_ = refused_ || !refusal.empty();
        reply_.text += refusal;
      }
      if (At(choice, {"usage"}).is_object()) {  // Kimi: with the last choice
        reply_.usage = UsageFrom(At(choice, {"usage"}));
        reply_.usage_known = true;
      }
      const std::string finish = TextAt(choice, {"finish_reason"});
      if (!finish.empty()) End(finish);
    }
  }

  void End(const std::string& finish) {
    // The provider's own failures come as reasons too: DeepSeek's, GLM's, SGLang's, OpenRouter's.
    if (finish == "insufficient_system_resource" || finish == "network_error" ||
        finish == "abort" || finish == "error")
      return Fail({503, finish, "", "the provider ended with " + finish, std::nullopt});
    static const std::map<std::string, Finish> kFinish = {
        {"stop", Finish::kStop},
        {"eos", Finish::kStop},  // Together
        {"length", Finish::kLength},
        {"model_length", Finish::kLength},                   // Mistral
        {"model_context_window_exceeded", Finish::kLength},  // GLM
        {"content_filter", Finish::kRefused},
        {"sensitive", Finish::kRefused},  // GLM
    };
    const auto known = kFinish.find(finish);
    reply_.finish = known == kFinish.end() ? Finish::kOther : known->second;
    if (refused_) reply_.finish = Finish::kRefused;
    reply_.complete = true;
  }

  void Fail(ApiError error) {
    if (reply_.complete) return;
    if (error.status == 0)
      error.status = error.code == "rate_limit_exceeded" ? 429
                     : error.code == "context_length_exceeded" || error.code == "invalid_prompt"
                         ? 400
                         : 500;
    reply_.error = std::move(error);
  }

  bool refused_ = false;
};

class Chat : public WireProtocol {
 public:
  std::string Url(const Entry& entry) const override { return BaseOf(entry) + "/chat/completions"; }

  std::vector<std::string> Headers(const std::string& key) const override {
    if (key.empty()) return {};
    return {"Authorization: Bearer " + key};
  }

  std::string Body(const Entry& entry, const std::vector<Message>& messages) const override {
    const Parameters& parameters = entry.parameters;
    Json body = {{"model", entry.model}, {"messages", Json::array()}};
    for (const Message& message : messages)
      if (!message.text.empty())
        body["messages"].push_back({{"role", NameOf(message.role)}, {"content", message.text}});
    const std::string& field = parameters.max_tokens_field;
    body[field.empty() ? "max_tokens" : field] = parameters.max_output_tokens;
    if (parameters.temperature) body["temperature"] = *parameters.temperature;
    if (parameters.top_p) body["top_p"] = *parameters.top_p;
    if (!parameters.effort.empty()) body["reasoning_effort"] = parameters.effort;
    if (parameters.stream) {
      body["stream"] = true;
      body["stream_options"] = {{"include_usage", true}};
    }
    return Finished(std::move(body), entry);
  }

  std::unique_ptr<ReplyReader> NewReader() const override { return std::make_unique<Reader>(); }
};

}  // namespace

const WireProtocol& OpenAiChatProtocol() {
  static const Chat kProtocol;
  return kProtocol;
}

}  // namespace allranks::model
