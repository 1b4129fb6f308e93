// What goes over the wire: the four protocols that providers speak. A protocol says where a request
// goes, what it holds and what a reply means; sending, retrying and paying are elsewhere
// (model/http_model.cpp). The tests compare each field with the provider's documentation.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/entry.h"
#include "model/model.h"

namespace allranks::model {

// What a provider says went wrong, in a body of its own or inside a stream.
struct ApiError {
  int status = 0;                   // HTTP's; inside a stream: the one that its words stand for
  std::string type, code, message;  // in full: a key in it must be whole to be found
  std::optional<std::chrono::milliseconds> retry_after;  // where the body says so
};

// A reply as far as it has come.
struct WireReply {
  std::string text;
  Finish finish = Finish::kOther;
  Usage usage;               // as far as the provider has said it
  bool usage_known = false;  // and it is that of the whole reply, if `complete`
  std::string served_by;
  bool complete = false;  // the model has ended: this reply is paid for and is never asked again
  std::size_t unseen_bytes = 0;  // of reasoning that came and is not in the text
  std::optional<ApiError> error;
  std::string broken;  // why it cannot be read; empty: it can
  bool settled() const { return complete || error.has_value() || !broken.empty(); }
};

// Reads one reply. Anything may come: what is not understood is passed over, what is no JSON makes
// the reply broken unless it was complete before.
class ReplyReader {
 public:
  virtual ~ReplyReader() = default;
  virtual void Event(std::string_view name, std::string_view data) = 0;  // of a stream
  virtual void Document(std::string_view body) = 0;                      // without a stream
  const WireReply& reply() const { return reply_; }

 protected:
  WireReply reply_;
};

class WireProtocol {
 public:
  virtual ~WireProtocol() = default;
  virtual std::string Url(const Entry& entry) const = 0;
  // "Name: value", without those that every request has. An empty key sends none.
  virtual std::vector<std::string> Headers(const std::string& key) const = 0;
  // JSON. Messages without text are left out: some providers refuse them. Text that is not UTF-8
  // has U+FFFD in its place. The entry's `extra` is merged in last, as RFC 7396 says: objects
  // member by member, null removes one.
  virtual std::string Body(const Entry& entry, const std::vector<Message>& messages) const = 0;
  virtual std::unique_ptr<ReplyReader> NewReader() const = 0;
};

// Of an HTTP protocol; another is a CHECK.
const WireProtocol& WireProtocolOf(Protocol protocol);
const WireProtocol& OpenAiResponsesProtocol();
const WireProtocol& OpenAiChatProtocol();
const WireProtocol& AnthropicProtocol();
const WireProtocol& GeminiProtocol();

// A body that came with a status other than 200: JSON in any of the forms in use, or words.
ApiError ParseErrorBody(int status, std::string_view body);

}  // namespace allranks::model
