// Lines, statements and blocks of a source.
#include "problem/statements.h"

#include <algorithm>
#include <utility>

namespace allranks::problem {
namespace {

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool IsTagChar(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// Where `//@tag` begins in a comment.
std::size_t FindTag(const std::string& comment, const std::string& tag) {
  const std::string wanted = "//@" + tag;
  for (std::size_t at = comment.find(wanted); at != std::string::npos;
       at = comment.find(wanted, at + 1)) {
    const std::size_t end = at + wanted.size();
    if (end == comment.size() || !IsTagChar(comment[end])) return at;
  }
  return std::string::npos;
}

}  // namespace

Line SplitLine(std::string_view text) {
  Line line;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && c == '/' && i + 1 < text.size() && text[i + 1] == '/') {
      line.comment = std::string(text.substr(i));
      break;
    }
    line.code += c;
    line.mask += quote == 0 || c == quote ? c : ' ';
    if (quote != 0 && c == '\\' && i + 1 < text.size()) {
      line.code += text[++i];
      line.mask += ' ';
    } else if (c == quote) {
      quote = 0;
      // 1'000'000 has no literal in it.
    } else if (quote == 0 &&
               (c == '"' || (c == '\'' &&
                             (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1])))))) {
      quote = c;
    }
  }
  return line;
}

Statements::Statements(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines_.push_back(SplitLine(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  Refresh();
}

void Statements::Refresh() {
  parentheses_.clear();
  braces_.clear();
  int parentheses = 0, braces = 0;
  for (const Line& line : lines_) {
    for (const char c : line.mask) {
      parentheses += (c == '(') - (c == ')');
      braces += (c == '{') - (c == '}');
    }
    parentheses_.push_back(parentheses);
    braces_.push_back(braces);
  }
}

std::string Statements::Text() const {
  std::string text;
  for (const Line& line : lines_) text += line.code + line.comment + '\n';
  return text;
}

std::vector<std::string> Statements::Tags() const {
  std::vector<std::string> tags;
  for (const Line& line : lines_) {
    for (std::size_t at = line.comment.find("//@"); at != std::string::npos;
         at = line.comment.find("//@", at + 3)) {
      std::size_t end = at + 3;
      while (end < line.comment.size() && IsTagChar(line.comment[end])) ++end;
      tags.push_back(line.comment.substr(at + 3, end - at - 3));
    }
  }
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  return tags;
}

std::optional<std::size_t> Statements::TakeTag(const std::string& tag) {
  for (std::size_t i = lines_.size(); i-- > 0;) {
    const std::size_t at = FindTag(lines_[i].comment, tag);
    if (at == std::string::npos) continue;
    lines_[i].comment.erase(at, tag.size() + 3);
    return i;
  }
  return std::nullopt;
}

bool Statements::IsBlank(std::size_t line) const { return Trim(lines_[line].code).empty(); }

bool Statements::IsMarker(std::size_t line) const {
  return lines_[line].comment.starts_with("// >>> edit") ||
         lines_[line].comment.starts_with("// <<< edit");
}

bool Statements::EndsStatement(std::size_t line) const {
  const std::string_view code = Trim(lines_[line].mask);
  if (code.empty() || code[0] == '#') return true;
  return parentheses_[line] <= 0 &&
         (code.back() == ';' || code.back() == '{' || code.back() == '}' || code.back() == ':');
}

Span Statements::StatementAt(std::size_t line) const {
  Span span{line, line};
  while (span.first > 0 && !EndsStatement(span.first - 1)) --span.first;
  while (span.last + 1 < lines_.size() && !EndsStatement(span.last)) ++span.last;
  return span;
}

std::optional<Span> Statements::WithBlock(Span span) const {
  // `} while (...);` and `} else {` are parts of something else.
  if (Trim(lines_[span.first].mask).starts_with('}')) return std::nullopt;
  const int before = span.first == 0 ? 0 : braces_[span.first - 1];
  while (braces_[span.last] > before) {
    if (++span.last == lines_.size()) return std::nullopt;
    // `} else {` comes back to the depth of before only within its line.
    if (braces_[span.last] == before) break;
  }
  return span;
}

std::string Statements::CodeOf(Span span) const {
  std::string code;
  for (std::size_t i = span.first; i <= span.last; ++i) {
    if (i > span.first) code += '\n';
    code += lines_[i].code;
  }
  return code;
}

void Statements::Replace(Span span, const std::string& code) {
  std::string_view rest = code;
  for (std::size_t i = span.first; i <= span.last; ++i) {
    const std::size_t end = i == span.last ? std::string_view::npos : rest.find('\n');
    const std::string comment = std::move(lines_[i].comment);
    lines_[i] = SplitLine(rest.substr(0, end));
    lines_[i].comment = comment;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  Refresh();
}

void Statements::Drop(Span span) {
  const std::string indent =
      lines_[span.first].code.substr(0, lines_[span.first].code.find_first_not_of(" \t"));
  for (std::size_t i = span.first; i <= span.last; ++i) lines_[i] = Line();
  lines_[span.first] = SplitLine(indent + ";");
  Refresh();
}

void Statements::Duplicate(Span span) {
  const std::vector<Line> copy(lines_.begin() + static_cast<std::ptrdiff_t>(span.first),
                               lines_.begin() + static_cast<std::ptrdiff_t>(span.last) + 1);
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(span.last) + 1, copy.begin(),
                copy.end());
  Refresh();
}

void Statements::Move(Span span, std::size_t before) {
  const auto at = [&](std::size_t line) {
    return lines_.begin() + static_cast<std::ptrdiff_t>(line);
  };
  if (before > span.last) {
    std::rotate(at(span.first), at(span.last + 1), at(before));
  } else {
    std::rotate(at(before), at(span.first), at(span.last + 1));
  }
  Refresh();
}

bool Statements::MoveDown(Span span) {
  std::size_t next = span.last + 1;
  while (next < lines_.size() && IsBlank(next) && !IsMarker(next)) ++next;
  if (next == lines_.size() || IsMarker(next)) return false;
  if (Trim(lines_[next].mask).starts_with('}')) {
    // Behind the end of its block, unless that is a function's or goes on with else.
    if (braces_[next] == 0 || Trim(lines_[next].mask) != "}") return false;
    Move(span, next + 1);
    return true;
  }
  const auto follower = WithBlock(StatementAt(next));
  if (!follower) return false;
  Move(span, follower->last + 1);
  return true;
}

bool Statements::MoveUp(Span span) {
  if (span.first == 0) return false;
  std::size_t previous = span.first - 1;
  while (previous > 0 && IsBlank(previous) && !IsMarker(previous)) --previous;
  if (IsMarker(previous) || IsBlank(previous)) return false;
  const std::string_view code = Trim(lines_[previous].mask);
  Span target = StatementAt(previous);
  if (code.ends_with('{')) {
    if (braces_[previous] <= 1 || code.starts_with('}')) return false;
  } else if (code.starts_with('}')) {
    // The whole block: back to the line before which the depth is the one behind it.
    while (target.first > 0 && (braces_[target.first - 1] > braces_[previous] ||
                                Trim(lines_[target.first].mask).starts_with('}'))) {
      target.first = StatementAt(target.first - 1).first;
    }
  }
  Move(span, target.first);
  return true;
}

}  // namespace allranks::problem
