// One POST over libcurl: blocking, with limits of time and size, ended early by a Stop. Which
// failures are worth another try is not decided here (model/retry.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop.h"

namespace allranks::model {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string_view body;
  std::chrono::milliseconds connect{15'000};
  // Without a byte in either direction. Where the whole reply comes at once (`stall_from_reply`),
  // it counts from its first byte on.
  std::chrono::milliseconds stall{600'000};
  bool stall_from_reply = false;
  std::chrono::milliseconds total{3'600'000};
  std::size_t largest_body = 0;
  // Called with each piece of a 200's body. True: the reply is whole; the transfer then has a
  // moment to end by itself, so that the connection can be used again, and is cut off.
  std::function<bool(std::string_view piece)> on_body;
};

struct HttpResponse {
  enum class End {
    kWhole,     // a reply with status, headers and all of its body
    kDone,      // on_body said so, whatever came after
    kStopped,   // by the Stop
    kConnect,   // no connection: name, address, refusal, limit of `connect`
    kBroken,    // reset or closed before the end
    kStalled,   // `stall`
    kTooLong,   // `total`
    kTooLarge,  // `largest_body`
    kUnusable,  // nothing will help but another endpoint: certificate, URL
  };
  End end = End::kWhole;
  long status = 0;    // 0: none came
  bool sent = false;  // all of the request: it may be charged
  std::string body;
  std::string error;  // of the transfer, for people
  // Of the last header of that name; empty: none.
  std::string retry_after, retry_after_ms;
};

// Connections are kept per thread and used again; a request is sent once, whatever becomes of its
// connection. Redirections are not followed: the key would go
// with them.
HttpResponse Post(const HttpRequest& request, const Stop& stop);

}  // namespace allranks::model
