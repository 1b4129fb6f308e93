#include "problem/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace allranks::problem {
namespace {

constexpr std::array<std::string_view, 16> kCodeNames = {
    "cuda", "cu",  "cuh", "cpp", "c++",      "cxx",     "cc",       "c",
    "h",    "hpp", "hh",  "hxx", "cuda-cpp", "cudacpp", "cuda_cpp", "cuda-c++"};
constexpr std::array<std::string_view, 34> kOtherNames = {
    "python", "py",   "bash",     "sh",       "shell",  "zsh",     "console", "text", "txt",
    "plain",  "json", "markdown", "md",       "make",   "cmake",   "yaml",    "yml",  "toml",
    "xml",    "html", "diff",     "patch",    "ptx",    "asm",     "sass",    "rust", "go",
    "java",   "js",   "log",      "makefile", "output", "mermaid", "latex"};

template <std::size_t kCount>
bool StartsWithOne(std::string_view text, const std::array<std::string_view, kCount>& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view start) { return text.starts_with(start); });
}

template <std::size_t kCount>
bool Has(const std::array<std::string_view, kCount>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view TakeLine(std::string_view* text) {
  const std::size_t end = text->find('\n');
  const std::string_view line = text->substr(0, end == std::string_view::npos ? end : end + 1);
  text->remove_prefix(line.size());
  return line;
}

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::size_t CharacterAt(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + length > text.size()) return 0;
  // The second byte rules out overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned char second = byte(at + 1);
  const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  for (std::size_t k = 2; k < length; ++k)
    if ((byte(at + k) & 0xc0) != 0x80) return 0;
  return length;
}

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = CharacterAt(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

bool IsCodeName(std::string_view language) { return Has(kCodeNames, language); }
bool IsOtherName(std::string_view language) { return Has(kOtherNames, language); }

std::string LanguageOf(std::string_view info) {
  info = info.substr(0, 64);
  info.remove_prefix(std::min(info.find_first_not_of(" \t{."), info.size()));
  std::string word(info.substr(0, info.find_first_of(" \t\r:{},=")));
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

bool BeginsCode(std::string_view line) {
  constexpr std::array<std::string_view, 13> kSure = {
      "#include",   "#define", "#pragma",    "#if",          "#undef",       "//",        "/*",
      "__global__", "__host_", "__device__", "__constant__", "extern \"C\"", "__shared__"};
  constexpr std::array<std::string_view, 11> kPerhaps = {
      "template", "namespace", "using ", "constexpr", "static ", "struct ",
      "inline ",  "typedef ",  "class ", "enum ",     "const "};
  line = Trimmed(line);
  if (StartsWithOne(line, kSure)) return true;
  return StartsWithOne(line, kPerhaps) &&
         std::string_view(";{}>,)").find(line.back()) != std::string_view::npos;
}

bool EndsCode(std::string_view line) {
  line = Trimmed(line);
  return !line.empty() && (line.back() == '}' || line.back() == ';' || line.ends_with("*/") ||
                           line.starts_with("//") || line.starts_with("#endif"));
}

bool LooksLikeCode(std::string_view code) {
  if (code.find_first_of(";{") == std::string_view::npos) return false;
  while (!code.empty())
    if (BeginsCode(TakeLine(&code))) return true;
  return false;
}

bool Closed(std::string_view code) {
  std::vector<char> open;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return false;
      open.pop_back();
    } else if (c == '/' && code.substr(i, 2) == "//") {
      i = std::min(code.find('\n', i), code.size());
    } else if (c == '/' && code.substr(i, 2) == "/*") {
      i = code.find("*/", i + 2);
      if (i == std::string_view::npos) return false;
      ++i;
    } else if (c == '"' && i > 0 && code[i - 1] == 'R') {
      const std::size_t paren = code.find('(', i);
      if (paren == std::string_view::npos || paren - i > 17) return false;
      const std::string end = ")" + std::string(code.substr(i + 1, paren - i - 1)) + "\"";
      i = code.find(end, paren);
      if (i == std::string_view::npos) return false;
      i += end.size() - 1;
    } else if (c == '"' || (c == '\'' && (i == 0 || !IsWord(code[i - 1])))) {
      for (++i; i < code.size() && code[i] != c && code[i] != '\n'; ++i)
        if (code[i] == '\\') ++i;
      if (i >= code.size()) return false;
    }
  }
  return open.empty();
}

bool Defines(std::string_view code, std::string_view name) {
  for (std::size_t at = code.find(name); at != std::string_view::npos;
       at = code.find(name, at + name.size())) {
    if (at > 0 && IsWord(code[at - 1])) continue;
    std::size_t next = code.find_first_not_of(kBlank, at + name.size());
    if (next == std::string_view::npos || code[next] != '(') continue;
    next = code.find_first_of("();{}", next + 1);
    if (next == std::string_view::npos || code[next] != ')') continue;
    next = code.find_first_not_of(kBlank, next + 1);
    if (next != std::string_view::npos && code[next] == '{') return true;
  }
  return false;
}

}  // namespace allranks::problem
