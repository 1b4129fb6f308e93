// Text tables for terminals: columns as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace allranks::report {

struct TextTable {
  std::vector<std::vector<std::string>> rows;  // the first one is the head
  std::string left;  // columns that are flush left, as their letters: "ac"
};
std::string Render(const TextTable& table);

// Nothing that a terminal would obey, and UTF-8: each other character is a '?'.
std::string Clean(const std::string& text);
// That, cut to at most `most` characters.
std::string Shown(const std::string& text, std::size_t most);

// A sentence, clean, in lines of at most `width` bytes, each after `indent`.
std::string Wrapped(const std::string& text, std::size_t width, const std::string& indent);

std::string Percent(double rate);  // "41.3"

// "1 family", "2 families".
std::string Counted(int count, const char* one, const char* many);

}  // namespace allranks::report
