// What the protocols share in reading and writing JSON. Everything read is another's: each access
// asks for the type first.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/protocol.h"

namespace allranks::model {

using Json = nlohmann::json;

// Discarded if it is no JSON, longer than 4 MiB or nested deeper than 100: what a parser makes of
// such is many times as large. Replies are far from either.
Json ParseBounded(std::string_view text);

// The member at the end of a path of names; null where there is none.
const Json& At(const Json& value, std::initializer_list<const char*> path);
// A string there, or "".
std::string TextAt(const Json& value, std::initializer_list<const char*> path);
// A number of tokens there; 0 for anything else.
std::uint64_t CountAt(const Json& value, std::initializer_list<const char*> path);

// From {"error": {...}}, {"error": "..."}, {"message": ...}, {"detail": ...}, or an array of one.
// `status` where there is none in it.
ApiError ErrorFrom(const Json& value, int status);

// BASE without slashes at its end.
std::string BaseOf(const Entry& entry);
// The system messages, one paragraph each; empty: none.
std::string SystemOf(const std::vector<Message>& messages);
// Adds `extra` and writes it down.
std::string Finished(Json body, const Entry& entry);

// A reader that has parsed what it is given.
class JsonReader : public ReplyReader {
 public:
  void Event(std::string_view name, std::string_view data) final;
  void Document(std::string_view body) final;

 protected:
  virtual void Take(const Json& event) = 0;
  virtual void TakeWhole(const Json& document) = 0;
  // The words that end a stream and are no JSON.
  virtual bool IsEnd(std::string_view /*data*/) { return false; }
};

}  // namespace allranks::model
