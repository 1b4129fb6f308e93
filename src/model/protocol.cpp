#include "model/protocol.h"

#include <cmath>
#include <cstdlib>

#include "base/check.h"
#include "model/protocol_json.h"

namespace allranks::model {
namespace {

// "37s", "0.5s": google.protobuf.Duration in JSON.
std::optional<std::chrono::milliseconds> DurationFrom(const std::string& text) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || std::string_view(end) != "s" || !(seconds >= 0) || seconds > 1e9)
    return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
}

}  // namespace

Json ParseBounded(std::string_view text) {
  constexpr std::size_t kLongest = 4u << 20;
  constexpr int kDeepest = 100;
  Json discarded(Json::value_t::discarded);
  if (text.size() > kLongest) return discarded;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return discarded;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return Json::parse(text, nullptr, false);
}

const Json& At(const Json& value, std::initializer_list<const char*> path) {
  static const Json kNull;
  const Json* at = &value;
  for (const char* name : path) {
    if (!at->is_object()) return kNull;
    const auto found = at->find(name);
    if (found == at->end()) return kNull;
    at = &*found;
  }
  return *at;
}

std::string TextAt(const Json& value, std::initializer_list<const char*> path) {
  const Json& at = At(value, path);
  return at.is_string() ? at.get<std::string>() : std::string();
}

std::uint64_t CountAt(const Json& value, std::initializer_list<const char*> path) {
  constexpr std::uint64_t kMost = 1'000'000'000'000;  // sums stay far from overflow
  const Json& at = At(value, path);
  if (at.is_number_unsigned()) return std::min(at.get<std::uint64_t>(), kMost);
  if (!at.is_number_float()) return 0;  // negative integers too
  const double number = at.get<double>();
  return number > 0 && number < static_cast<double>(kMost) ? static_cast<std::uint64_t>(number) : 0;
}

ApiError ErrorFrom(const Json& given, int status) {
  const Json& value = given.is_array() && !given.empty() ? given.front() : given;
  ApiError error;
  error.status = status;
  const Json& nested = At(value, {"error"});
  const Json& from = nested.is_object() ? nested : value;
  error.type = TextAt(from, {"type"});
  error.message = TextAt(from, {"message"});
  if (nested.is_string()) error.message = nested.get<std::string>();
  if (error.message.empty()) error.message = TextAt(value, {"detail"});
  const Json& code = At(from, {"code"});
  if (code.is_string()) error.code = code.get<std::string>();
  if (code.is_number_integer() && error.status == 0) {
    const auto number = code.get<std::int64_t>();
    if (number >= 400 && number <= 599) error.status = static_cast<int>(number);
  }
  // Gemini: https://ai.google.dev/api, google.rpc.Status
  if (error.type.empty()) error.type = TextAt(from, {"status"});
  for (const Json& detail : At(from, {"details"})) {
    const std::string reason = TextAt(detail, {"reason"});
    if (!reason.empty()) error.code = reason;
    const std::string delay = TextAt(detail, {"retryDelay"});
    if (!delay.empty()) error.retry_after = DurationFrom(delay);
  }
  // Anthropic: a limit of spending is told apart from one of rate by this member only.
  const std::string detail = TextAt(from, {"details", "error_code"});
  if (!detail.empty()) error.code = detail;
  if (error.message.empty()) error.message = error.type.empty() ? error.code : error.type;
  return error;
}

ApiError ParseErrorBody(int status, std::string_view body) {
  const Json json = ParseBounded(body);
  ApiError error;
  if (!json.is_discarded()) error = ErrorFrom(json, status);
  error.status = status;
  if (error.message.empty()) error.message = std::string(body);
  return error;
}

std::string BaseOf(const Entry& entry) {
  std::string base = entry.endpoint;
  while (!base.empty() && base.back() == '/') base.pop_back();
  return base;
}

std::string SystemOf(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& message : messages) {
    if (message.role != Message::Role::kSystem || message.text.empty()) continue;
    if (!text.empty()) text += "\n\n";
    text += message.text;
  }
  return text;
}

std::string Finished(Json body, const Entry& entry) {
  if (!entry.parameters.extra.empty()) {
    const Json extra = Json::parse(entry.parameters.extra, nullptr, false);
    if (extra.is_object()) body.merge_patch(extra);  // models.toml's reader has refused the rest
  }
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void JsonReader::Event(std::string_view name, std::string_view data) {
  if (IsEnd(data)) return;
  const Json json = ParseBounded(data);
  if (json.is_discarded()) {
    if (!reply_.complete && reply_.broken.empty()) reply_.broken = "an event is not JSON";
    return;
  }
  if (reply_.error || !reply_.broken.empty()) return;
  if (name == "error" && !json.contains("type")) {
    if (!reply_.complete) reply_.error = ErrorFrom(json, 0);
    return;
  }
  Take(json);
}

void JsonReader::Document(std::string_view body) {
  const Json json = ParseBounded(body);
  if (!json.is_object()) {
    reply_.broken =
        json.is_discarded() ? "the reply is not JSON" : "the reply is not a JSON object";
    return;
  }
  TakeWhole(json);
}

const WireProtocol& WireProtocolOf(Protocol protocol) {
  switch (protocol) {
    case Protocol::kOpenAiResponses:
      return OpenAiResponsesProtocol();
    case Protocol::kOpenAiChat:
      return OpenAiChatProtocol();
    case Protocol::kAnthropic:
      return AnthropicProtocol();
    case Protocol::kGemini:
      return GeminiProtocol();
    default:
      break;
  }
  CHECK(false, "{} is not spoken over HTTP", static_cast<int>(protocol));
  return OpenAiChatProtocol();
}

}  // namespace allranks::model
