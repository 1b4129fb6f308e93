// The providers' side of the four protocols, written from their documentation and without a line of
// src/model: what a request must look like, and what replies and errors look like.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace allranks::model::testing {

enum class Wire { kResponses, kChat, kAnthropic, kGemini, kNone };
const char* NameOf(Wire wire);

struct Seen {
  std::string method, target;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  Wire wire = Wire::kNone;  // by the path
  bool stream = false;
  std::string model;
  int number = 0;  // from 0, over all
  int repeat = 0;  // how often this body came before
};

struct Tokens {
  unsigned long input = 0, cached = 0, output = 0, reasoning = 0;  // as model::Usage
  bool operator==(const Tokens&) const = default;
};

enum class Fault {
  kNone,
  kTooMany,        // 429, with Answer::retry_after if there is one
  kQuota,          // 429 that no waiting helps: OpenAI's and Anthropic's
  kServerError,    // 500
  kOverloaded,     // 529
  kBadKey,         // 401; Gemini: 400 with API_KEY_INVALID
  kTooLong,        // 400: the prompt does not fit
  kNoModel,        // 404
  kFiltered,       // 400 by the provider's filter: OpenAI's and Azure's
  kReset,          // RST instead of a reply
  kHalf,           // closed in the middle of a reply
  kHalfReset,      // RST there
  kUnended,        // the stream ends well before the reply does
  kInvalidJson,    // in the middle of a reply
  kStall,          // silence in the middle of a reply
  kSilence,        // silence from the start
  kLongLength,     // Content-Length says more than there is
  kShortLength,    // and less
  kCutAfterEnd,    // closed after the event that ends the reply: it is charged
  kStallAfterEnd,  // silence after it
  kErrorInside,    // an error event in a stream, after the first words
};

struct Answer {
  Fault fault = Fault::kNone;
  std::string text = "Hello.";
  std::string reasoning;  // sent beside the text, as the protocol does
  std::string finish;     // the protocol's word; empty: the model ended by itself
  Tokens tokens;
  bool with_usage = true;       // chat only: servers that leave it out
  std::string retry_after;      // header lines without their end, as "Retry-After: 1"
  std::string message;          // of an error; empty: one of the protocol's
  bool no_stream = false;       // a document even if a stream was asked for
  std::size_t piece = 0;        // bytes at a time; 0: an event at a time
  std::string line_end = "\n";  // of events
  int delay_ms = 0;             // before the first byte
};

// What is wrong with a request by its provider's documentation; empty: nothing. Members that are
// not documented are wrong.
std::string RequestFault(const Seen& seen);

// A reply in pieces: events of a stream, or one document. Those from `end` on say that the model
// has ended: before them nothing is charged.
struct Rendered {
  std::vector<std::string> pieces;
  std::size_t end = 0;
};
Rendered RenderReply(const Seen& seen, const Answer& answer);

struct RenderedError {
  int status = 0;
  std::string body;
};
RenderedError RenderError(const Seen& seen, const Answer& answer);
std::string RenderErrorEvent(const Seen& seen, const Answer& answer);

}  // namespace allranks::model::testing
