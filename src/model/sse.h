// Server-sent events (WHATWG HTML, section 9.2.6), read from pieces of any size: how every provider
// streams a reply.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace allranks::model {

class SseParser {
 public:
  struct Event {
    std::string name;  // of the last `event:` line; empty: none
    std::string data;  // the `data:` lines, joined by newlines
  };
  explicit SseParser(std::function<void(const Event&)> on_event) : on_event_(std::move(on_event)) {}

  // Lines end with LF, CR or CRLF, wherever the pieces are cut. Memory is what is fed and not yet
  // an event: whoever feeds bounds it.
  void Feed(std::string_view piece);

  // The stream is over. An event that lacks its blank line is passed on: whether it is whole is
  // seen from its data.
  void Finish();

 private:
  void Line(std::string_view line);
  void Dispatch();

  std::function<void(const Event&)> on_event_;
  std::string line_;
  Event event_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a LF that comes first belongs to the line before
  bool first_line_ = true;
};

}  // namespace allranks::model
