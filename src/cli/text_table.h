// Tables for terminals: columns as wide as what is in them, lines of at most kTextWidth columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace allranks::cli {

inline constexpr std::size_t kTextWidth = 120;

// Columns that the text takes, as far as one character takes one.
std::size_t WidthOf(std::string_view text);

// `text` in at most `room` columns: what is too long has "..." in its middle. Control characters
// are replaced.
std::string Shortened(std::string_view text, std::size_t room);
// The same for a demangled name, which loses its anonymous namespaces first, then its parameters.
std::string ShortenedName(std::string_view name, std::size_t room);

// Broken at spaces; lines after the first begin with `indent` spaces.
std::string Wrapped(std::string_view text, std::size_t indent);

// "504 B", "1.2 MB", powers of 1000.
std::string Bytes(std::uint64_t bytes);

class TextTable {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;
    bool name = false;  // shortened if the line is too long: one column of a table
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // As many cells as there are columns.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // Of a line, unshortened.
  std::size_t Width() const;
  std::string Text() const;

 private:
  std::vector<std::size_t> Widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace allranks::cli
