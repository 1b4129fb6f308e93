#include "model/retry.h"

#include <curl/curl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace allranks::model {
namespace {

using std::chrono::milliseconds;

bool Has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// No waiting helps: someone has to pay. The names are OpenAI's and Anthropic's
// (https://platform.openai.com/docs/guides/error-codes,
// https://platform.claude.com/docs/en/api/errors).
bool NoMoney(const ApiError& error) {
  for (const std::string* name : {&error.type, &error.code})
    if (*name == "insufficient_quota" || *name == "billing_error" ||
        *name == "credit_balance_exhausted" || *name == "billing_hard_limit_reached" ||
        *name == "billing_not_active" || *name == "enforced_spend_limit_reached" ||
        Has(*name, "_spend_limit_exceeded") || Has(*name, "_usage_limit_exceeded"))
      return true;
  return Has(error.message, "credit balance is too low");  // Anthropic, as a 400
}

bool WrongKey(const ApiError& error) {
  return error.code == "API_KEY_INVALID" ||  // Gemini, as a 400
         error.code == "invalid_api_key" || error.type == "authentication_error";
}

std::optional<milliseconds> NumberOf(const std::string& text, double unit_ms) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(number >= 0)) return std::nullopt;
  return milliseconds(static_cast<std::int64_t>(std::ceil(std::min(number * unit_ms, 1e12))));
}

// The tables that may hold its endpoint and its key, for a remedy.
std::string TablesOf(const Entry& entry) {
  std::string tables = fmt::format("[models.\"{}\"] of {}", entry.table,
                                   entry.file.empty() ? "models.toml" : entry.file);
  if (!entry.provider.empty()) tables += fmt::format(" or in [providers.{}]", entry.provider);
  return tables;
}

void ClassifyStatus(const ApiError& error, const Entry& entry, Setback* setback) {
  const int status = error.status;
  setback->why = fmt::format("{}: {}", status, error.message);
  setback->retry_after = error.retry_after;
  if (NoMoney(error)) {
    setback->kind = Failure::Kind::kModel;
    setback->remedy = "the account has no credit left: add credit or raise its limit";
  } else if (status == 401 || status == 403 || status == 407 || WrongKey(error)) {
    setback->kind = Failure::Kind::kModel;
    setback->remedy =
        entry.key_variable.empty()
            ? fmt::format("the provider requires a key: name its variable by `key` in {}",
                          TablesOf(entry))
            : fmt::format(
                  "check the key in the variable {0} and its permissions: "
                  "export {0}=...",
                  entry.key_variable);
  } else if (status == 402) {
    setback->kind = Failure::Kind::kModel;
    setback->remedy = "the account has no credit left";
  } else if (status == 404 || status == 405 || status == 410 || error.code == "model_not_found" ||
             (status > 0 && status < 400)) {
    setback->kind = Failure::Kind::kModel;
    setback->remedy = fmt::format(
        "check the model's name '{}' and the endpoint {} in {}; `allranks models` lists the known "
        "models",
        entry.model, entry.endpoint, TablesOf(entry));
  } else if (status == 408 || status == 409 || status == 425 || status == 429 || status >= 500) {
    setback->retry = true;
    setback->slow_down = status == 429 || status == 503 || status == 529;
  } else {
    setback->kind = Failure::Kind::kRequest;
    setback->remedy = "the provider rejects this request: check the parameters in models.toml";
  }
}

}  // namespace

bool IsRefusal(const ApiError& error) {
  if (error.status != 400 && error.status != 403) return false;
  return error.code == "content_filter" || error.code == "content_policy_violation" ||
         error.code == "invalid_prompt" ||  // OpenAI: flagged by its usage policy
         error.code == "data_inspection_failed" || error.code == "DataInspectionFailed";  // Qwen
}

std::optional<milliseconds> RetryAfterOf(const std::string& retry_after,
                                         const std::string& retry_after_ms,
                                         std::chrono::system_clock::time_point now) {
  if (const auto exact = NumberOf(retry_after_ms, 1)) return exact;
  if (const auto seconds = NumberOf(retry_after, 1000)) return seconds;
  if (retry_after.empty()) return std::nullopt;
  const time_t date = curl_getdate(retry_after.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  const auto wait =
      std::chrono::ceil<milliseconds>(std::chrono::system_clock::from_time_t(date) - now);
  if (wait <= milliseconds(0)) return std::nullopt;
  return wait;
}

Setback Classify(const HttpResponse& response, const std::optional<ApiError>& error,
                 const std::string& broken, const Entry& entry,
                 std::chrono::system_clock::time_point now) {
  using End = HttpResponse::End;
  Setback setback;
  if (response.end == End::kStopped) {
    setback.kind = Failure::Kind::kStopped;
    setback.why = "stopped";
    return setback;
  }
  if (error && error->status != 0) {
    ClassifyStatus(*error, entry, &setback);
    const auto header = RetryAfterOf(response.retry_after, response.retry_after_ms, now);
    if (header) setback.retry_after = header;
    if (setback.retry && setback.retry_after &&
        *setback.retry_after > entry.retry.longest_retry_after) {
      setback.retry = false;
      setback.remedy = fmt::format(
          "the provider accepts no requests for {:.0f} s: retry after that, or raise "
          "`longest_retry_after` in models.toml",
          1e-3 * static_cast<double>(setback.retry_after->count()));
    }
    return setback;
  }
  switch (response.end) {
    case End::kUnusable:
      setback.kind = Failure::Kind::kModel;
      setback.why = response.error;
      setback.remedy = fmt::format("check the endpoint {} in {}", entry.endpoint, TablesOf(entry));
      return setback;
    case End::kTooLong:  // it was being written all that time, and would be again
      setback.why = response.error;
      setback.remedy = "raise `total` in models.toml";
      return setback;
    case End::kTooLarge:
      setback.kind = Failure::Kind::kRequest;
      setback.why = response.error;
      return setback;
    case End::kWhole:
    case End::kDone:
      setback.why = broken.empty() ? "the stream ended before the reply was complete" : broken;
      break;
    default:
      setback.why = response.error.empty() ? "the connection was lost" : response.error;
  }
  setback.retry = true;
  setback.remedy =
      response.end == End::kConnect
          ? fmt::format("check that the server runs, the network, and the endpoint {} in {}",
                        entry.endpoint, TablesOf(entry))
          : fmt::format("check the network and the endpoint {}", entry.endpoint);
  return setback;
}

milliseconds WaitBefore(int next, const RetryPolicy& policy, const Setback& setback, double unit) {
  const auto base = static_cast<double>(policy.base.count());
  if (setback.retry_after)
    return *setback.retry_after + milliseconds(static_cast<std::int64_t>(unit * base));
  const double most = std::min(std::ldexp(base, std::clamp(next - 2, 0, 40)),
                               static_cast<double>(policy.cap.count()));
  return milliseconds(static_cast<std::int64_t>(unit * most));
}

}  // namespace allranks::model
