// Responses: https://platform.openai.com/docs/api-reference/responses and its streaming events.
// Nothing is stored at the provider.
#include "model/protocol_json.h"

namespace allranks::model {
namespace {

class Reader : public JsonReader {
 protected:
  void Take(const Json& event) override {
    const std::string type = TextAt(event, {"type"});
    const Json& response = At(event, {"response"});
    if (response.is_object()) {
      const std::string model = TextAt(response, {"model"});
      if (!model.empty()) reply_.served_by = model;
    }
    if (reply_.complete) return;
    if (type == "response.output_text.delta") {
      reply_.text += TextAt(event, {"delta"});
    } else if (type == "response.refusal.delta") {
      reply_.text += TextAt(event, {"delta"});
      refused_ = true;
    } else if (type == "response.reasoning_text.delta" ||
               type == "response.reasoning_summary_text.delta") {
      reply_.unseen_bytes += TextAt(event, {"delta"}).size();
    } else if (type == "response.completed" || type == "response.incomplete" ||
               type == "response.failed") {
      TakeWhole(response);
    } else if (type == "error") {
      // Its members stand in the event itself; some servers put them into "error".
      Fail(ErrorFrom(event, 0), TextAt(event, {"error", "type"}));
    }
  }

  void TakeWhole(const Json& response) override {
    const std::string model = TextAt(response, {"model"});
    if (!model.empty()) reply_.served_by = model;
    const Json& usage = At(response, {"usage"});
    if (usage.is_object()) {
      reply_.usage.input = CountAt(usage, {"input_tokens"});
      reply_.usage.cached_input =
          std::min(CountAt(usage, {"input_tokens_details", "cached_tokens"}), reply_.usage.input);
      reply_.usage.output = CountAt(usage, {"output_tokens"});
      reply_.usage.reasoning = std::min(
          CountAt(usage, {"output_tokens_details", "reasoning_tokens"}), reply_.usage.output);
      reply_.usage_known = true;
    }
    const std::string status = TextAt(response, {"status"});
    if (status == "failed" || At(response, {"error"}).is_object())
      return Fail(ErrorFrom(response, 0), "");
    if (status != "completed" && status != "incomplete") {
      reply_.broken = "a response with the status '" + status.substr(0, 40) + "'";
      return;
    }
    TakeOutput(At(response, {"output"}));
    reply_.finish = Finish::kStop;
    if (status == "incomplete") {
      const std::string reason = TextAt(response, {"incomplete_details", "reason"});
      reply_.finish = reason == "max_output_tokens" ? Finish::kLength
                      : reason == "content_filter"  ? Finish::kRefused
                                                    : Finish::kOther;
    }
    if (refused_) reply_.finish = Finish::kRefused;
    reply_.complete = true;
  }

 private:
  // The whole output stands in the last event again; servers that leave it out have sent the
  // pieces.
  void TakeOutput(const Json& output) {
    std::string text;
    for (const Json& item : output) {
      if (TextAt(item, {"type"}) != "message") continue;
      for (const Json& part : At(item, {"content"})) {
        const std::string type = TextAt(part, {"type"});
        if (type == "output_text") text += TextAt(part, {"text"});
        if (type == "refusal") {
          text += TextAt(part, {"refusal"});
          refused_ = true;
        }
      }
    }
    if (!text.empty()) reply_.text = std::move(text);
  }

  void Fail(ApiError error, const std::string& type) {
    if (error.type == "error") error.type = type;  // of the event, not of what went wrong
    if (error.status == 0) {
      const std::string& code = error.code;
      error.status = code == "rate_limit_exceeded" || code == "insufficient_quota" ? 429
                     : code.starts_with("invalid_") || code == "context_length_exceeded" ||
                             error.type == "invalid_request_error"
                         ? 400
                         : 500;
    }
    reply_.error = std::move(error);
  }

  bool refused_ = false;
};

class Responses : public WireProtocol {
 public:
  std::string Url(const Entry& entry) const override { return BaseOf(entry) + "/responses"; }

  std::vector<std::string> Headers(const std::string& key) const override {
    if (key.empty()) return {};
    return {"Authorization: Bearer " + key};
  }

  std::string Body(const Entry& entry, const std::vector<Message>& messages) const override {
    const Parameters& parameters = entry.parameters;
    Json body = {{"model", entry.model},
                 {"input", Json::array()},
                 {"max_output_tokens", parameters.max_output_tokens},
                 {"store", false}};
    const std::string system = SystemOf(messages);
    if (!system.empty()) body["instructions"] = system;
    for (const Message& message : messages)
      if (message.role != Message::Role::kSystem && !message.text.empty())
        body["input"].push_back({{"role", NameOf(message.role)}, {"content", message.text}});
    if (parameters.temperature) body["temperature"] = *parameters.temperature;
    if (parameters.top_p) body["top_p"] = *parameters.top_p;
    if (!parameters.effort.empty()) body["reasoning"] = {{"effort", parameters.effort}};
    if (parameters.stream) body["stream"] = true;
    return Finished(std::move(body), entry);
  }

  std::unique_ptr<ReplyReader> NewReader() const override { return std::make_unique<Reader>(); }
};

}  // namespace

const WireProtocol& OpenAiResponsesProtocol() {
  static const Responses kProtocol;
  return kProtocol;
}

}  // namespace allranks::model
