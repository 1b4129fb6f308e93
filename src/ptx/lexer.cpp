// The lexer (lexer.h): a table of character classes and loops over it.
#include "ptx/lexer.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

namespace allranks::ptx {
namespace {

enum : std::uint8_t { kStart = 1, kWord = 2, kDigit = 4, kHex = 8, kBlank = 16 };

constexpr std::array<std::uint8_t, 256> MakeClasses() {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = kStart | kWord;
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kStart | kWord;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kWord | kDigit | kHex;
  for (int c = 'a'; c <= 'f'; ++c) classes[c] |= kHex;
  for (int c = 'A'; c <= 'F'; ++c) classes[c] |= kHex;
  classes['_'] = classes['$'] = kStart | kWord;
  classes['%'] = kStart;
  classes[' '] = classes['\t'] = classes['\r'] = classes['\f'] = classes['\v'] = kBlank;
  return classes;
}

constexpr std::array<std::uint8_t, 256> kClasses = MakeClasses();

bool Is(char c, std::uint8_t kind) { return (kClasses[static_cast<unsigned char>(c)] & kind) != 0; }

const char* SkipWord(const char* p) {
  while (Is(*p, kWord)) ++p;
  return p;
}

// "shared::cta", "16x64b": word characters and pairs of colons between them.
const char* SkipDottedWord(const char* p) {
  p = SkipWord(p);
  while (p[0] == ':' && p[1] == ':' && Is(p[2], kWord)) p = SkipWord(p + 2);
  return p;
}

}  // namespace

void Lexer::SkipSpace() {
  while (Is(*cursor_, kBlank)) ++cursor_;
  if (*cursor_ == '\n' || *cursor_ == '/') SkipSpaceSlow();
}

void Lexer::SkipSpaceSlow() {
  for (;;) {
    if (*cursor_ == '\n') {
      ++line_;
      ++cursor_;
    } else if (Is(*cursor_, kBlank)) {
      ++cursor_;
    } else if (cursor_[0] == '/' && cursor_[1] == '/') {
      const void* newline = std::memchr(cursor_, '\n', static_cast<std::size_t>(end_ - cursor_));
      cursor_ = newline != nullptr ? static_cast<const char*>(newline) : end_;
    } else if (cursor_[0] == '/' && cursor_[1] == '*') {
      cursor_ += 2;
      while (cursor_ != end_ && !(cursor_[0] == '*' && cursor_[1] == '/')) {
        if (*cursor_ == '\n') ++line_;
        ++cursor_;
      }
      if (cursor_ != end_) cursor_ += 2;
    } else {
      return;
    }
  }
}

bool Lexer::Ahead(std::string_view chars) {
  SkipSpace();
  return std::string_view(cursor_, static_cast<std::size_t>(end_ - cursor_)).starts_with(chars);
}

bool Lexer::TryChars(std::string_view chars) {
  if (!Ahead(chars)) return false;
  Take(cursor_ + chars.size());
  return true;
}

bool Lexer::TryIdentifier(std::string_view* word) {
  SkipSpace();
  if (!Is(*cursor_, kStart)) return false;
  Take(SkipWord(cursor_ + 1));
  *word = last_;
  return true;
}

bool Lexer::TryDotted(std::string_view* word) {
  SkipSpace();
  return TryAdjacentDotted(word);
}

bool Lexer::TryWord(std::string_view word) {
  if (Peek() != '.') return false;
  const char* before = cursor_;
  std::string_view found;
  if (TryAdjacentDotted(&found) && found == word) return true;
  cursor_ = before;
  return false;
}

bool Lexer::TryAdjacentDotted(std::string_view* word) {
  if (cursor_[0] != '.' || !Is(cursor_[1], kWord)) return false;
  Take(SkipDottedWord(cursor_ + 1));
  *word = last_.substr(1);
  return true;
}

bool Lexer::TryString(std::string_view* word) {
  SkipSpace();
  if (*cursor_ != '"') return false;
  const char* p = cursor_ + 1;
  while (p != end_ && *p != '"' && *p != '\n') ++p;
  if (*p != '"') return false;
  Take(p + 1);
  *word = last_.substr(1, last_.size() - 2);
  return true;
}

bool Lexer::TryNumber(Number* number, bool* bad) {
  SkipSpace();
  const char* p = cursor_;
  if (!Is(*p, kDigit)) return false;
  number->kind = Number::Kind::kInt;
  int base = 10;
  if (*p == '0') {
    const char mark = static_cast<char>(p[1] | 0x20);
    if (mark == 'x') {
      base = 16;
    } else if (mark == 'b') {
      base = 2;
    } else if (mark == 'f' || mark == 'd') {
      base = 16;
      number->kind = mark == 'f' ? Number::Kind::kF32 : Number::Kind::kF64;
    } else if (Is(p[1], kDigit)) {
      base = 8;
    }
    if (base != 10) p += base == 8 ? 1 : 2;
  }
  const char* digits = p;
  while (Is(*p, kHex) && (base == 16 || Is(*p, kDigit))) ++p;

  const bool decimal_point = *p == '.' || *p == 'e' || *p == 'E';
  if (decimal_point && (base == 10 || base == 8) && number->kind == Number::Kind::kInt) {
    double value = 0;
    const std::from_chars_result result = std::from_chars(cursor_, end_, value);
    if (result.ec != std::errc() || Is(*result.ptr, kWord)) {
      *bad = true;
      return false;
    }
    number->kind = Number::Kind::kF64;
    number->bits = std::bit_cast<std::uint64_t>(value);
    Take(result.ptr);
    return true;
  }

  const std::from_chars_result result = std::from_chars(digits, p, number->bits, base);
  bool good = result.ec == std::errc() && result.ptr == p;
  if (number->kind == Number::Kind::kF32) good = good && p - digits == 8;
  if (number->kind == Number::Kind::kF64) good = good && p - digits == 16;
  if (number->kind == Number::Kind::kInt && (*p == 'U' || *p == 'u')) ++p;
  if (!good || Is(*p, kWord)) {
    *bad = true;
    return false;
  }
  Take(p);
  return true;
}

bool Lexer::TryVersion(int* major, int* minor) {
  SkipSpace();
  const std::from_chars_result first = std::from_chars(cursor_, end_, *major);
  if (first.ec != std::errc() || *first.ptr != '.') return false;
  const std::from_chars_result second = std::from_chars(first.ptr + 1, end_, *minor);
  if (second.ec != std::errc() || Is(*second.ptr, kWord)) return false;
  Take(second.ptr);
  return *major >= 0 && *minor >= 0;
}

bool Lexer::SkipPast(char stop) {
  const void* found = std::memchr(cursor_, stop, static_cast<std::size_t>(end_ - cursor_));
  if (found == nullptr) return false;
  const char* p = static_cast<const char*>(found) + 1;
  for (; cursor_ != p; ++cursor_) line_ += *cursor_ == '\n';
  return true;
}

// To the next brace, quote or slash, or to the end. Function bodies are nearly all of a text, and
// of large libraries most are never read: this is what reading such a module takes.
const char* Lexer::NextMark(const char* p) {
#ifdef __SSE2__
  constexpr std::ptrdiff_t kBlock = sizeof(__m128i);
  const auto all = [](char c) { return _mm_set1_epi8(c); };
  const __m128i open = all('{'), close = all('}'), quote = all('"'), slash = all('/');
  const __m128i newline = all('\n');
  for (; end_ - p >= kBlock; p += kBlock) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i braces = _mm_or_si128(_mm_cmpeq_epi8(block, open), _mm_cmpeq_epi8(block, close));
    const __m128i others = _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, slash));
    const auto marks = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(braces, others)));
    const auto lines = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(block, newline)));
    const unsigned before = marks == 0 ? ~0U : (marks & (0U - marks)) - 1;
    line_ += static_cast<std::uint32_t>(std::popcount(lines & before));
    if (marks != 0) return p + std::countr_zero(marks);
  }
#endif
  for (; p != end_; ++p) {
    if (*p == '{' || *p == '}' || *p == '"' || *p == '/') return p;
    line_ += *p == '\n' ? 1 : 0;
  }
  return p;
}

bool Lexer::SkipBraces() {
  int depth = 0;
  for (const char* p = NextMark(cursor_); p != end_; p = NextMark(p)) {
    switch (*p++) {
      case '{':
        ++depth;
        break;
      case '}':
        if (--depth > 0) break;
        cursor_ = p;
        return depth == 0;
      case '"':  // on one line (TryString)
        while (p != end_ && *p != '"' && *p != '\n') ++p;
        if (p != end_ && *p == '"') ++p;
        break;
      default:
        if (*p == '/' || *p == '*') {
          cursor_ = p - 1;
          SkipSpaceSlow();
          p = cursor_;
        }
        break;
    }
  }
  return false;
}

std::string_view Lexer::Near() {
  SkipSpace();
  if (cursor_ == end_) return "end of text";
  constexpr std::ptrdiff_t kMost = 40;
  const char* p = cursor_;
  if (*p == '.' || Is(*p, kStart)) ++p;
  p = SkipDottedWord(p);
  if (p == cursor_) ++p;
  if (p - cursor_ > kMost) p = cursor_ + kMost;
  return std::string_view(cursor_, static_cast<std::size_t>(p - cursor_));
}

}  // namespace allranks::ptx
