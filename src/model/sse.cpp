#include "model/sse.h"

namespace allranks::model {

void SseParser::Feed(std::string_view piece) {
  while (!piece.empty()) {
    if (after_cr_ && piece.front() == '\n') piece.remove_prefix(1);
    after_cr_ = false;
    const std::size_t end = piece.find_first_of("\r\n");
    if (end == std::string_view::npos) {
      line_ += piece;
      return;
    }
    after_cr_ = piece[end] == '\r';
    line_ += piece.substr(0, end);
    piece.remove_prefix(end + 1);
    Line(line_);
    line_.clear();
  }
}

void SseParser::Finish() {
  if (!line_.empty()) Line(line_);
  line_.clear();
  Dispatch();
}

void SseParser::Line(std::string_view line) {
  if (first_line_ && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
  first_line_ = false;
  if (line.empty()) return Dispatch();
  const std::size_t colon = line.find(':');
  if (colon == 0) return;  // a comment: some providers keep the connection alive with them
  const std::string_view field = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (field == "event") {
    event_.name = value;
  } else if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
}

void SseParser::Dispatch() {
  if (has_data_) on_event_(event_);
  event_ = Event();
  has_data_ = false;
}

}  // namespace allranks::model
