// What replies and errors look like, by each provider's documentation.
#include "fake_wire.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace allranks::model::testing {
namespace {

using Json = nlohmann::json;

// The text in a few parts; a part may end inside a character only where bytes are cut, not here.
std::vector<std::string> Parts(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  const std::size_t step = std::max<std::size_t>(1, text.size() / 4);
  while (at < text.size()) {
    std::size_t end = std::min(text.size(), at + step);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

std::string EventText(const std::string& name, const std::string& data, const std::string& end) {
  std::string text;
  if (!name.empty()) text += "event: " + name + end;
  return text + "data: " + data + end + end;
}

Json ResponsesUsage(const Tokens& t) {
  return {{"input_tokens", t.input},
          {"input_tokens_details", {{"cached_tokens", t.cached}}},
          {"output_tokens", t.output},
          {"output_tokens_details", {{"reasoning_tokens", t.reasoning}}},
          {"total_tokens", t.input + t.output}};
}

// https://platform.openai.com/docs/api-reference/responses-streaming
Rendered Responses(const Seen& seen, const Answer& answer) {
  const std::string finish = answer.finish.empty() ? "completed" : answer.finish;
  Json response = {{"id", "resp_1"},          {"object", "response"},
                   {"status", "in_progress"}, {"model", seen.model + "-2026-01-01"},
                   {"error", nullptr},        {"incomplete_details", nullptr},
                   {"output", Json::array()}, {"usage", nullptr}};
  const Json open = response;
  const bool refusal = finish == "refusal";
  response["status"] = finish == "completed" || refusal ? "completed" : "incomplete";
  if (response["status"] == "incomplete") response["incomplete_details"] = {{"reason", finish}};
  response["usage"] = ResponsesUsage(answer.tokens);
  Json part = {{"type", "output_text"}, {"text", answer.text}, {"annotations", Json::array()}};
  if (refusal) part = {{"type", "refusal"}, {"refusal", answer.text}};
  response["output"] =
      Json::array({{{"type", "reasoning"}, {"id", "rs_1"}, {"summary", Json::array()}},
                   {{"type", "message"},
                    {"id", "msg_1"},
                    {"role", "assistant"},
                    {"content", Json::array({part})}}});
  Rendered out;
  if (!seen.stream) {
    out.pieces = {response.dump()};
    return out;
  }
  int sequence = 0;
  const auto add = [&](Json event) {
    event["sequence_number"] = sequence++;
    out.pieces.push_back(
        EventText(event["type"].get<std::string>(), event.dump(), answer.line_end));
  };
  add({{"type", "response.created"}, {"response", open}});
  add({{"type", "response.in_progress"}, {"response", open}});
  for (const std::string& piece : Parts(answer.reasoning))
    add({{"type", "response.reasoning_summary_text.delta"}, {"delta", piece}});
  for (const std::string& piece : Parts(answer.text))
    add({{"type", refusal ? "response.refusal.delta" : "response.output_text.delta"},
         {"item_id", "msg_1"},
         {"output_index", 1},
         {"content_index", 0},
         {"delta", piece}});
  if (!refusal) add({{"type", "response.output_text.done"}, {"text", answer.text}});
  out.end = out.pieces.size();
  add({{"type", response["status"] == "completed" ? "response.completed" : "response.incomplete"},
       {"response", response}});
  return out;
}

// https://platform.openai.com/docs/api-reference/chat-streaming; reasoning_content:
// https://api-docs.deepseek.com/guides/reasoning_model
Rendered Chat(const Seen& seen, const Answer& answer) {
  const std::string finish = answer.finish.empty() ? "stop" : answer.finish;
  const Tokens& t = answer.tokens;
  const Json usage = {{"prompt_tokens", t.input},
                      {"completion_tokens", t.output},
                      {"total_tokens", t.input + t.output},
                      {"prompt_tokens_details", {{"cached_tokens", t.cached}}},
                      {"completion_tokens_details", {{"reasoning_tokens", t.reasoning}}}};
  Rendered out;
  if (!seen.stream) {
    Json message = {{"role", "assistant"}, {"content", answer.text}, {"refusal", nullptr}};
    if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
    Json document = {
        {"id", "chatcmpl-1"},
        {"object", "chat.completion"},
        {"model", seen.model + "-served"},
        {"choices",
         Json::array({{{"index", 0}, {"message", message}, {"finish_reason", finish}}})}};
    if (answer.with_usage) document["usage"] = usage;
    out.pieces = {document.dump()};
    return out;
  }
  const auto add = [&](Json choices, Json with_usage) {
    const Json chunk = {{"id", "chatcmpl-1"},
                        {"object", "chat.completion.chunk"},
                        {"model", seen.model + "-served"},
                        {"choices", std::move(choices)},
                        {"usage", std::move(with_usage)}};
    out.pieces.push_back(EventText("", chunk.dump(), answer.line_end));
  };
  const auto delta = [&](Json part) {
    add(Json::array({{{"index", 0}, {"delta", std::move(part)}, {"finish_reason", nullptr}}}),
        nullptr);
  };
  delta({{"role", "assistant"}, {"content", ""}});
  out.pieces.push_back(": keep-alive" + answer.line_end + answer.line_end);
  for (const std::string& piece : Parts(answer.reasoning))
    delta({{"content", nullptr}, {"reasoning_content", piece}});
  for (const std::string& piece : Parts(answer.text)) delta({{"content", piece}});
  out.end = out.pieces.size();
  add(Json::array({{{"index", 0}, {"delta", Json::object()}, {"finish_reason", finish}}}), nullptr);
  if (answer.with_usage) add(Json::array(), usage);
  out.pieces.push_back(EventText("", "[DONE]", answer.line_end));
  return out;
}

// https://platform.claude.com/docs/en/build-with-claude/streaming
Rendered Anthropic(const Seen& seen, const Answer& answer) {
  const std::string finish = answer.finish.empty() ? "end_turn" : answer.finish;
  const Tokens& t = answer.tokens;
  const unsigned long written = (t.input - t.cached) / 2;
  Json usage = {{"input_tokens", t.input - t.cached - written},
                {"cache_creation_input_tokens", written},
                {"cache_read_input_tokens", t.cached},
                {"output_tokens", t.output},
                {"output_tokens_details", {{"thinking_tokens", t.reasoning}}}};
  Json message = {{"id", "msg_1"},
                  {"type", "message"},
                  {"role", "assistant"},
                  {"model", seen.model + "-20260101"},
                  {"stop_sequence", nullptr}};
  Rendered out;
  if (!seen.stream) {
    message["content"] = Json::array();
    if (!answer.reasoning.empty())
      message["content"].push_back(
          {{"type", "thinking"}, {"thinking", answer.reasoning}, {"signature", "s"}});
    message["content"].push_back({{"type", "text"}, {"text", answer.text}});
    message["stop_reason"] = finish;
    message["usage"] = usage;
    out.pieces = {message.dump()};
    return out;
  }
  const auto add = [&](const Json& event) {
    out.pieces.push_back(
        EventText(event["type"].get<std::string>(), event.dump(), answer.line_end));
  };
  message["content"] = Json::array();
  message["stop_reason"] = nullptr;
  message["usage"] = usage;
  message["usage"]["output_tokens"] = 1;
  message["usage"].erase("output_tokens_details");
  add({{"type", "message_start"}, {"message", message}});
  int index = 0;
  if (!answer.reasoning.empty()) {
    add({{"type", "content_block_start"},
         {"index", index},
         {"content_block", {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}}});
    for (const std::string& piece : Parts(answer.reasoning))
      add({{"type", "content_block_delta"},
           {"index", index},
           {"delta", {{"type", "thinking_delta"}, {"thinking", piece}}}});
    add({{"type", "content_block_delta"},
         {"index", index},
         {"delta", {{"type", "signature_delta"}, {"signature", "s"}}}});
    add({{"type", "content_block_stop"}, {"index", index++}});
  }
  add({{"type", "content_block_start"},
       {"index", index},
       {"content_block", {{"type", "text"}, {"text", ""}}}});
  add({{"type", "ping"}});
  for (const std::string& piece : Parts(answer.text))
    add({{"type", "content_block_delta"},
         {"index", index},
         {"delta", {{"type", "text_delta"}, {"text", piece}}}});
  add({{"type", "content_block_stop"}, {"index", index}});
  out.end = out.pieces.size();
  add({{"type", "message_delta"},
       {"delta", {{"stop_reason", finish}, {"stop_sequence", nullptr}}},
       {"usage", usage}});
  add({{"type", "message_stop"}});
  return out;
}

// https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse
Rendered Gemini(const Seen& seen, const Answer& answer) {
  const std::string finish = answer.finish.empty() ? "STOP" : answer.finish;
  const Tokens& t = answer.tokens;
  const auto usage = [&](unsigned long visible) -> Json {
    return {{"promptTokenCount", t.input},
            {"cachedContentTokenCount", t.cached},
            {"candidatesTokenCount", visible},
            {"thoughtsTokenCount", t.reasoning},
            {"totalTokenCount", t.input + t.reasoning + visible}};
  };
  const auto response = [&](Json parts, const char* reason, unsigned long visible) -> Json {
    Json candidate = {{"content", {{"role", "model"}, {"parts", std::move(parts)}}}, {"index", 0}};
    if (reason != nullptr) candidate["finishReason"] = reason;
    return {{"candidates", Json::array({candidate})},
            {"usageMetadata", usage(visible)},
            {"modelVersion", seen.model + "-001"},
            {"responseId", "r1"}};
  };
  const unsigned long visible = t.output - t.reasoning;
  Rendered out;
  if (finish == "blocked") {
    const Json block = {{"promptFeedback", {{"blockReason", "PROHIBITED_CONTENT"}}},
                        {"usageMetadata", usage(visible)},
                        {"modelVersion", seen.model + "-001"}};
    out.pieces = {seen.stream ? EventText("", block.dump(), answer.line_end) : block.dump()};
    return out;
  }
  Json parts = Json::array();
  if (!answer.reasoning.empty()) parts.push_back({{"text", answer.reasoning}, {"thought", true}});
  if (!seen.stream) {
    parts.push_back({{"text", answer.text}});
    out.pieces = {response(parts, finish.c_str(), visible).dump()};
    return out;
  }
  const auto add = [&](const Json& event) {
    out.pieces.push_back(EventText("", event.dump(), answer.line_end));
  };
  if (!parts.empty()) add(response(parts, nullptr, 0));
  const std::vector<std::string> pieces = Parts(answer.text);
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i)
    add(response(Json::array({{{"text", pieces[i]}}}), nullptr, 0));
  out.end = out.pieces.size();
  add(response(Json::array({{{"text", pieces.empty() ? "" : pieces.back()}}}), finish.c_str(),
               visible));
  return out;
}

}  // namespace

const char* NameOf(Wire wire) {
  switch (wire) {
    case Wire::kResponses:
      return "openai-responses";
    case Wire::kChat:
      return "openai-chat";
    case Wire::kAnthropic:
      return "anthropic";
    case Wire::kGemini:
      return "gemini";
    case Wire::kNone:
      break;
  }
  return "none";
}

Rendered RenderReply(const Seen& seen, const Answer& answer) {
  switch (seen.wire) {
    case Wire::kResponses:
      return Responses(seen, answer);
    case Wire::kChat:
      return Chat(seen, answer);
    case Wire::kAnthropic:
      return Anthropic(seen, answer);
    default:
      return Gemini(seen, answer);
  }
}

RenderedError RenderError(const Seen& seen, const Answer& answer) {
  struct Words {
    int status;
    const char *openai_type, *openai_code, *anthropic, *gemini, *message;
  };
  const auto words = [&]() -> Words {
    switch (answer.fault) {
      case Fault::kTooMany:
        return {429,
                "requests",
                "rate_limit_exceeded",
                "rate_limit_error",
                "RESOURCE_EXHAUSTED",
                "Rate limit reached"};
      case Fault::kQuota:
        return {429,
                "insufficient_quota",
                "credit_balance_exhausted",
                "rate_limit_error",
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota"};
      case Fault::kOverloaded:
        return {529,           "server_error", "server_is_overloaded", "overloaded_error",
                "UNAVAILABLE", "Overloaded"};
      case Fault::kBadKey:
        return {401,
                "invalid_request_error",
                "invalid_api_key",
                "authentication_error",
                "INVALID_ARGUMENT",
                "Incorrect API key provided"};
      case Fault::kTooLong:
        return {400,
                "invalid_request_error",
                "context_length_exceeded",
                "invalid_request_error",
                "INVALID_ARGUMENT",
                "prompt is too long"};
      case Fault::kFiltered:
        return {400,
                "invalid_request_error",
                seen.wire == Wire::kResponses ? "invalid_prompt" : "content_filter",
                "invalid_request_error",
                "INVALID_ARGUMENT",
                "flagged"};
      case Fault::kNoModel:
        return {404,         "invalid_request_error",   "model_not_found", "not_found_error",
                "NOT_FOUND", "The model does not exist"};
      default:
        return {500, "server_error", "server_error", "api_error", "INTERNAL", "Internal error"};
    }
  }();
  RenderedError out;
  out.status = words.status;
  const std::string message = answer.message.empty() ? words.message : answer.message;
  Json body;
  if (seen.wire == Wire::kAnthropic) {
    // https://platform.claude.com/docs/en/api/errors
    body = {{"type", "error"},
            {"error", {{"type", words.anthropic}, {"message", message}}},
            {"request_id", "req_1"}};
    if (answer.fault == Fault::kQuota)
      body["error"]["details"] = {{"error_code", "enforced_spend_limit_reached"}};
  } else if (seen.wire == Wire::kGemini) {
    // https://cloud.google.com/apis/design/errors
    body = {
        {"error", {{"message", message}, {"status", words.gemini}, {"details", Json::array()}}}};
    if (answer.fault == Fault::kBadKey) {
      out.status = 400;
      body["error"]["details"].push_back(
          {{"@type", "type.googleapis.com/google.rpc.ErrorInfo"}, {"reason", "API_KEY_INVALID"}});
    }
    body["error"]["code"] = out.status;
  } else {
    // https://platform.openai.com/docs/guides/error-codes
    body = {{"error",
             {{"message", message},
              {"type", words.openai_type},
              {"param", nullptr},
              {"code", words.openai_code}}}};
  }
  out.body = body.dump();
  return out;
}

std::string RenderErrorEvent(const Seen& seen, const Answer& answer) {
  Answer overloaded = answer;
  overloaded.fault = Fault::kOverloaded;
  if (seen.wire == Wire::kResponses) {
    const Json event = {{"type", "error"},
                        {"code", "server_error"},
                        {"message", "Overloaded"},
                        {"param", nullptr},
                        {"sequence_number", 9}};
    return EventText("error", event.dump(), answer.line_end);
  }
  return EventText(seen.wire == Wire::kAnthropic ? "error" : "", RenderError(seen, overloaded).body,
                   answer.line_end);
}

}  // namespace allranks::model::testing
