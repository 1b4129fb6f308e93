// Just enough of C++ to move and remove statements of a reference: lines, comments, strings,
// brackets. No parser: what it misjudges becomes a mutant that does not compile, which `problems
// check` shows. Part of mutate.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace allranks::problem {

struct Line {
  std::string code;  // without its comment
  std::string mask;  // the same with blanks for what stands in quotes
  std::string comment;
};

// Lines [first, last].
struct Span {
  std::size_t first = 0, last = 0;
};

class Statements {
 public:
  explicit Statements(std::string_view text);

  std::string Text() const;
  std::vector<std::string> Tags() const;
  // The last line with `//@tag`; it loses the tag.
  std::optional<std::size_t> TakeTag(const std::string& tag);

  // The statement that a line is part of: up to a ; { or }.
  Span StatementAt(std::size_t line) const;
  // With the block that it opens, and what is attached to it by else.
  std::optional<Span> WithBlock(Span statement) const;

  std::string CodeOf(Span span) const;
  void Replace(Span span, const std::string& code);
  // Blanks out a span; line numbers stay.
  void Drop(Span span);
  void Duplicate(Span span);
  // Puts a statement behind the next one or before the previous one, or out of its block if there
  // is none. False if there is no such place within its function.
  bool MoveDown(Span span);
  bool MoveUp(Span span);

 private:
  bool IsBlank(std::size_t line) const;
  bool IsMarker(std::size_t line) const;
  bool EndsStatement(std::size_t line) const;
  void Refresh();
  void Move(Span span, std::size_t before);

  std::vector<Line> lines_;
  std::vector<int> parentheses_, braces_;  // open at the end of each line
};

// Blanks for the contents of literals, and the code up to a comment.
Line SplitLine(std::string_view text);

}  // namespace allranks::problem
