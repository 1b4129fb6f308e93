// Messages: https://platform.claude.com/docs/en/api/messages, .../build-with-claude/streaming,
// .../build-with-claude/effort and .../build-with-claude/handling-stop-reasons.
#include <map>

#include "model/protocol_json.h"

namespace allranks::model {
namespace {

// https://platform.claude.com/docs/en/api/errors: an error inside a stream has a type and no
// status.
int StatusOf(const std::string& type) {
  static const std::map<std::string, int> kStatus = {
      {"invalid_request_error", 400}, {"authentication_error", 401},
      {"billing_error", 402},         {"permission_error", 403},
      {"not_found_error", 404},       {"request_too_large", 413},
      {"rate_limit_error", 429},      {"api_error", 500},
      {"timeout_error", 504},         {"overloaded_error", 529}};
  const auto known = kStatus.find(type);
  return known == kStatus.end() ? 500 : known->second;
}

Finish FinishOf(const std::string& reason) {
  if (reason == "end_turn" || reason == "stop_sequence") return Finish::kStop;
  if (reason == "max_tokens" || reason == "model_context_window_exceeded") return Finish::kLength;
  if (reason == "refusal") return Finish::kRefused;
  return Finish::kOther;  // tool_use, pause_turn
}

class Reader : public JsonReader {
 protected:
  void Take(const Json& event) override {
    const std::string type = TextAt(event, {"type"});
    if (reply_.complete) return;
    if (type == "message_start") {
      reply_.served_by = TextAt(event, {"message", "model"});
      TakeUsage(At(event, {"message", "usage"}));
    } else if (type == "content_block_start") {
      if (TextAt(event, {"content_block", "type"}) == "text")
        reply_.text += TextAt(event, {"content_block", "text"});
    } else if (type == "content_block_delta") {
      const std::string kind = TextAt(event, {"delta", "type"});
      if (kind == "text_delta") reply_.text += TextAt(event, {"delta", "text"});
      if (kind == "thinking_delta")
        reply_.unseen_bytes += TextAt(event, {"delta", "thinking"}).size();
    } else if (type == "message_delta") {
      TakeUsage(At(event, {"usage"}));
      const std::string reason = TextAt(event, {"delta", "stop_reason"});
      if (!reason.empty()) {
        reply_.finish = FinishOf(reason);
        reply_.complete = true;
      }
    } else if (type == "message_stop") {
      reply_.broken = "the message ended without a stop_reason";
    } else if (type == "error") {
      TakeError(event);
    }
  }

  void TakeWhole(const Json& message) override {
    if (TextAt(message, {"type"}) == "error") return TakeError(message);
    const std::string reason = TextAt(message, {"stop_reason"});
    reply_.served_by = TextAt(message, {"model"});
    for (const Json& block : At(message, {"content"}))
      if (TextAt(block, {"type"}) == "text") reply_.text += TextAt(block, {"text"});
    TakeUsage(At(message, {"usage"}));
    if (reason.empty()) {
      reply_.broken = "the message has no stop_reason";
      return;
    }
    reply_.finish = FinishOf(reason);
    reply_.complete = true;
  }

 private:
  // Figures of a stream are cumulative; what a later event leaves out stays as it was.
  void TakeUsage(const Json& usage) {
    if (!usage.is_object()) return;
    const auto take = [&](const char* name, std::uint64_t* into) {
      if (At(usage, {name}).is_number()) *into = CountAt(usage, {name});
    };
    take("input_tokens", &plain_);
    take("cache_creation_input_tokens", &written_);
    take("cache_read_input_tokens", &read_);
    take("output_tokens", &reply_.usage.output);
    const Json& details = At(usage, {"output_tokens_details"});
    if (details.is_object()) reply_.usage.reasoning = CountAt(details, {"thinking_tokens"});
    reply_.usage.reasoning = std::min(reply_.usage.reasoning, reply_.usage.output);
    reply_.usage.input = plain_ + written_ + read_;
    reply_.usage.cached_input = read_;
    reply_.usage_known = true;
  }

  void TakeError(const Json& event) {
    ApiError error = ErrorFrom(event, 0);
    error.status = StatusOf(error.type);
    reply_.error = std::move(error);
  }

  std::uint64_t plain_ = 0, written_ = 0, read_ = 0;
};

class Messages : public WireProtocol {
 public:
  std::string Url(const Entry& entry) const override { return BaseOf(entry) + "/messages"; }

  std::vector<std::string> Headers(const std::string& key) const override {
    std::vector<std::string> headers = {"anthropic-version: 2023-06-01"};
    if (!key.empty()) headers.push_back("x-api-key: " + key);
    return headers;
  }

  std::string Body(const Entry& entry, const std::vector<Message>& messages) const override {
    const Parameters& parameters = entry.parameters;
    Json body = {{"model", entry.model},
                 {"max_tokens", parameters.max_output_tokens},
                 {"messages", Json::array()}};
    const std::string system = SystemOf(messages);
    if (!system.empty()) body["system"] = system;
    for (const Message& message : messages)
      if (message.role != Message::Role::kSystem && !message.text.empty())
        body["messages"].push_back({{"role", NameOf(message.role)}, {"content", message.text}});
    if (parameters.temperature) body["temperature"] = *parameters.temperature;
    if (parameters.top_p) body["top_p"] = *parameters.top_p;
    if (!parameters.effort.empty()) {
      // The effort governs thinking only where thinking is on, which not every model has as its
      // default.
      body["output_config"] = {{"effort", parameters.effort}};
      body["thinking"] = {{"type", "adaptive"}};
    }
    if (parameters.stream) body["stream"] = true;
    return Finished(std::move(body), entry);
  }

  std::unique_ptr<ReplyReader> NewReader() const override { return std::make_unique<Reader>(); }
};

}  // namespace

const WireProtocol& AnthropicProtocol() {
  static const Messages kProtocol;
  return kProtocol;
}

}  // namespace allranks::model
