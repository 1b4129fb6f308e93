// Reads forms.txt: expands its patterns into instructions and splits those into words and operands,
// with a few lines of its own rather than with the parser under test.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace allranks::node::alu_test {

// One register, literal or `_` of an instruction; vectors and pairs are flattened.
struct Place {
  char kind = '_';  // h, r, d (64 bits), q (128), b (8), p; # a literal; _ nothing
  int number = 0;
  bool negated = false;
  std::uint64_t literal = 0;
  std::string selector;

  int bytes() const {
    return kind == 'b' ? 1 : kind == 'h' ? 2 : kind == 'r' ? 4 : kind == 'd' ? 8 : 0;
  }
};

struct Line {
  std::string text;  // with the semicolon
  std::string form;  // the dotted name
  std::string opcode;
  std::vector<std::string> words;
  std::vector<Place> to, from;

  bool Has(const std::string& word) const {
    for (const std::string& w : words) {
      if (w == word) return true;
    }
    return false;
  }
  // The i-th word from the end.
  const std::string& Last(std::size_t i = 0) const { return words.at(words.size() - 1 - i); }
  bool ReadsCarry() const { return opcode == "addc" || opcode == "subc" || opcode == "madc"; }
  bool WritesCarry() const { return Has("cc"); }
};

inline Place ReadPlace(std::string s) {
  Place p;
  if (s == "_") return p;
  if (s[0] == '!' || (s[0] == '-' && s[1] == '%')) {
    p.negated = true;
    s = s.substr(1);
  }
  if (s[0] != '%') {
    p.kind = '#';
    p.literal = std::stoull(s, nullptr, 0);
    return p;
  }
  std::size_t at = 1;
  p.kind = s[at++];
  if (p.kind == 'r' && s[at] == 'd') p.kind = s[at++];
  p.number = s[at++] - '0';
  if (at < s.size()) p.selector = s.substr(at + 1);
  return p;
}

inline Line ReadLine(const std::string& text) {
  Line line;
  line.text = text + ";";
  const std::size_t space = text.find(' ');
  line.form = text.substr(0, space);
  std::size_t from = 0;
  for (std::size_t dot = line.form.find('.');; dot = line.form.find('.', from)) {
    line.words.push_back(line.form.substr(from, dot - from));
    if (dot == std::string::npos) break;
    from = dot + 1;
  }
  line.opcode = line.words[0];
  line.words.erase(line.words.begin());
  // The first operand, with everything in its braces or bars, is what is written.
  int depth = 0;
  bool first = true;
  std::string token;
  const auto flush = [&] {
    if (!token.empty()) (first ? line.to : line.from).push_back(ReadPlace(token));
    token.clear();
  };
  for (const char c : text.substr(space + 1) + ",") {
    if (c == '{' || c == '}') {
      if (c == '}') flush();
      depth += c == '{' ? 1 : -1;
    } else if (c == ',' || c == '|') {
      flush();
      if (c == ',' && depth == 0) first = false;
    } else if (c != ' ') {
      token += c;
    }
  }
  return line;
}

// All choices of `pattern`, the innermost parentheses first.
inline void Expand(const std::string& pattern, std::vector<std::string>* out) {
  const std::size_t close = pattern.find(')');
  if (close == std::string::npos) {
    std::string text = pattern;
    for (char& c : text) c = c == '/' ? '|' : c;
    out->push_back(text);
    return;
  }
  const std::size_t open = pattern.rfind('(', close);
  const std::string choices = pattern.substr(open + 1, close - open - 1) + "|";
  std::size_t from = 0;
  for (std::size_t bar = choices.find('|'); bar != std::string::npos;
       bar = choices.find('|', from)) {
    Expand(pattern.substr(0, open) + choices.substr(from, bar - from) + pattern.substr(close + 1),
           out);
    from = bar + 1;
  }
}

// The instructions of forms.txt, in groups that its comments name.
inline std::map<std::string, std::vector<Line>> ReadForms(const std::string& path) {
  std::map<std::string, std::vector<Line>> groups;
  std::map<std::string, std::string> names;
  std::ifstream file(path);
  std::string group;
  for (std::string text; std::getline(file, text);) {
    if (text.empty()) continue;
    if (text[0] == '#') {
      group = text.substr(2);
    } else if (const std::size_t is = text.find(" = "); text[0] == '$' && is < 12) {
      names[text.substr(0, is)] = text.substr(is + 3);
    } else {
      for (const auto& [name, value] : names) {
        for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name)) {
          text.replace(at, name.size(), value);
        }
      }
      std::vector<std::string> expanded;
      Expand(text, &expanded);
      for (const std::string& one : expanded) groups[group].push_back(ReadLine(one));
    }
  }
  return groups;
}

}  // namespace allranks::node::alu_test
