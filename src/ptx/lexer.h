// Cuts PTX text into words, numbers and strings, without copying and without look-ahead beyond one
// token. The parser calls for what it expects; whatever else stands there stays for its error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace allranks::ptx {

struct Number {
  enum class Kind : std::uint8_t { kInt, kF32, kF64 };
  Kind kind = Kind::kInt;
  std::uint64_t bits = 0;
};

class Lexer {
 public:
  // `text` must outlive the lexer. The terminating NUL of std::string serves as sentinel.
  explicit Lexer(const std::string& text)
      : cursor_(text.c_str()), end_(text.c_str() + text.size()) {}

  // The next character that is neither white space nor comment; '\0' at the end.
  char Peek() {
    SkipSpace();
    return *cursor_;
  }
  bool AtEnd() { return Peek() == '\0' && cursor_ == end_; }

  // The following consume a token if it is the next one.
  bool TryChar(char c) {
    if (Peek() != c || cursor_ == end_) return false;
    Take(cursor_ + 1);
    return true;
  }
  bool TryChars(std::string_view chars);
  // Whether the next characters are these, without consuming them.
  bool Ahead(std::string_view chars);
  // [A-Za-z_$%][A-Za-z0-9_$]*
  bool TryIdentifier(std::string_view* word);
  // A dot and what belongs to it: "u32", "shared::cta", "16x64b". The dot is not part of the word.
  bool TryDotted(std::string_view* word);
  // ".word", exactly this one.
  bool TryWord(std::string_view word);
  // As TryDotted, but only directly after the last token (selectors: "%tid.x", "%r1.b0").
  bool TryAdjacentDotted(std::string_view* word);
  // "..." on one line, without escapes (nvcc writes none that matter). The quotes are cut off.
  bool TryString(std::string_view* word);
  // An unsigned literal of any form. False with *bad = true if there is one that is malformed.
  bool TryNumber(Number* number, bool* bad);
  // "9.0" of .version, which is not a number to be rounded.
  bool TryVersion(int* major, int* minor);

  // Up to and including the next `stop`, blindly. False if there is none.
  bool SkipPast(char stop);

  // From a `{` up to and including the `}` that belongs to it. False if there is none.
  bool SkipBraces();

  // A place in the text, and back to it.
  struct Mark {
    const char* at = nullptr;
    std::uint32_t line = 1;
  };
  Mark mark() const { return {cursor_, line_}; }
  void Return(const Mark& mark) {
    cursor_ = mark.at;
    line_ = mark.line;
  }

  std::uint32_t line() const { return line_; }
  // For messages: the token at the cursor; the last one that was consumed, and its line.
  std::string_view Near();
  std::string_view last() const { return last_; }
  std::uint32_t last_line() const { return last_line_; }

 private:
  void SkipSpace();
  void SkipSpaceSlow();
  const char* NextMark(const char* p);
  // Moves to `to`, the end of the token that starts at the cursor.
  void Take(const char* to) {
    last_ = std::string_view(cursor_, static_cast<std::size_t>(to - cursor_));
    last_line_ = line_;
    cursor_ = to;
  }

  const char* cursor_;
  const char* end_;
  std::uint32_t line_ = 1;
  std::string_view last_;
  std::uint32_t last_line_ = 1;
};

}  // namespace allranks::ptx
