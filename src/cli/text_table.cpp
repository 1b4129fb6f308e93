#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace allranks::cli {

namespace {

constexpr std::string_view kDots = "...";
constexpr std::size_t kLeastName = 12;

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The first `count` characters.
std::string_view Head(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (!Continues(text[at]) && count-- == 0) break;
  return text.substr(0, at);
}

std::string_view Tail(std::string_view text, std::size_t count) {
  return text.substr(Head(text, WidthOf(text) - std::min(count, WidthOf(text))).size());
}

// At most `room` columns, of which the text's head has `least` if they fit, or two thirds.
std::string Cut(std::string_view text, std::size_t room, std::size_t least) {
  std::string clean(text);
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  if (WidthOf(clean) <= room) return clean;
  if (room <= kDots.size()) return std::string(Head(clean, room));
  const std::size_t left = room - kDots.size();
  std::size_t head = left - left / 3;
  if (least < left) head = std::max(head, least);
  return fmt::format("{}{}{}", Head(clean, head), kDots, Tail(clean, left - head));
}

// Where the parameters of a demangled function begin, behind the parenthesis; 0: it has none.
std::size_t Parameters(std::string_view name) {
  if (!name.ends_with(')')) return 0;
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) return at + 1;
  }
  return 0;
}

}  // namespace

std::size_t WidthOf(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !Continues(c); }));
}

std::string Shortened(std::string_view text, std::size_t room) { return Cut(text, room, 0); }

std::string ShortenedName(std::string_view name, std::size_t room) {
  std::string text(name);
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  if (WidthOf(text) > room)
    for (std::size_t at; (at = text.find(kAnonymous)) != std::string::npos;)
      text.erase(at, kAnonymous.size());
  return Cut(text, room, Parameters(text));
}

std::string Wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t room = kTextWidth;
  while (WidthOf(text) > room) {
    const std::string_view line = Head(text, room);
    std::size_t end = line.rfind(' ');
    const bool space = end != std::string_view::npos && end > 0;
    if (!space) end = line.size();
    out += fmt::format("{}\n{:{}}", text.substr(0, end), "", indent);
    text.remove_prefix(end + (space ? 1 : 0));
    room = kTextWidth - indent;
  }
  return out + std::string(text);
}

std::string Bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1e3;
  std::size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < kUnits.size(); ++unit) value /= 1e3;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::vector<std::size_t> TextTable::Widths() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(WidthOf(column.title));
  for (const std::vector<std::string>& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], WidthOf(row[c]));
  return widths;
}

std::size_t TextTable::Width() const {
  const std::vector<std::size_t> widths = Widths();
  return std::accumulate(widths.begin(), widths.end(), widths.size() - 1);
}

std::string TextTable::Text() const {
  std::vector<std::size_t> widths = Widths();
  if (const std::size_t width = Width(); width > kTextWidth) {
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].name)
        widths[c] = std::max(kLeastName, widths[c] - std::min(widths[c], width - kTextWidth));
  }
  std::string out;
  const auto line = [&](const auto& cell_of) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      std::string cell = cell_of(c);
      if (columns_[c].name) cell = ShortenedName(cell, widths[c]);
      const std::string pad(widths[c] - std::min(widths[c], WidthOf(cell)), ' ');
      if (c != 0) text += ' ';
      text += columns_[c].align == Align::kLeft ? cell + pad : pad + cell;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    if (WidthOf(text) > kTextWidth) text = Shortened(text, kTextWidth);  // figures without end
    out += text + "\n";
  };
  line([&](std::size_t c) { return columns_[c].title; });
  for (const std::vector<std::string>& row : rows_) line([&](std::size_t c) { return row[c]; });
  return out;
}

}  // namespace allranks::cli
