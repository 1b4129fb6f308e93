// When an attempt has failed: is another one of any use, and when. Classified, capped and jittered,
// so that a provider in trouble is not made worse and a wrong key is not tried six times.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "model/entry.h"
#include "model/http.h"
#include "model/model.h"
#include "model/protocol.h"

namespace allranks::model {

struct Setback {
  bool retry = false;
  Failure::Kind kind = Failure::Kind::kGaveUp;  // without a retry, or after the last one
  bool slow_down = false;  // the provider says that it is too much: 429, 503, 529
  std::string why;         // in a line
  std::string remedy;      // what the user can do; empty: nothing
  std::optional<std::chrono::milliseconds> retry_after;
};

// Of an attempt that did not give a complete reply. `error` is the provider's word, in a body or
// inside a stream; `broken` why a reply with status 200 cannot be read. `now` is for Retry-After's
// dates.
Setback Classify(const HttpResponse& response, const std::optional<ApiError>& error,
                 const std::string& broken, const Entry& entry,
                 std::chrono::system_clock::time_point now);

// The provider's filter took the prompt, and says so as an error: that is the model's answer to it.
bool IsRefusal(const ApiError& error);

// Retry-After (RFC 9110, section 10.2.3: seconds or a date) and retry-after-ms, which is finer and
// goes first. What cannot be read, and a date that has passed, is none.
std::optional<std::chrono::milliseconds> RetryAfterOf(const std::string& retry_after,
                                                      const std::string& retry_after_ms,
                                                      std::chrono::system_clock::time_point now);

// Before attempt `next` (from 2): drawn evenly from [0, base * 2^(next - 2)), at most `cap`; `unit`
// is in [0, 1). Where the provider names a time, that time and a draw from [0, base).
std::chrono::milliseconds WaitBefore(int next, const RetryPolicy& policy, const Setback& setback,
                                     double unit);

}  // namespace allranks::model
