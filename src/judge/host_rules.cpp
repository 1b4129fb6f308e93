#include "judge/host_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace allranks::judge {
namespace {

bool IsWordStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Goes through C++ by tokens, without comments and literals.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // The next word or single character that is no space; empty at the end.
  std::string_view Next() {
    for (;;) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
        Step();
      if (at_ >= text_.size()) return {};
      if (Starts("//")) {
        while (at_ < text_.size() && text_[at_] != '\n') Step();
      } else if (Starts("/*")) {
        Skip("*/", 2);
      } else if (Starts("\\\n")) {
        at_ += 2;  // a line that goes on
      } else {
        break;
      }
    }
    first_ = fresh_;
    fresh_ = false;
    const std::size_t begin = at_;
    if (IsWordStart(text_[at_])) {
      while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
      const std::string_view word = text_.substr(begin, at_ - begin);
      if (Starts("\"") && word.ends_with('R')) {
        SkipRaw();
        return "\"";
      }
      return word;
    }
    if (text_[at_] == '"' || (text_[at_] == '\'' && !(begin > 0 && IsWord(text_[begin - 1])))) {
      SkipLiteral(text_[at_]);
      return "\"";
    }
    ++at_;
    return text_.substr(begin, 1);
  }
  // Whether the last token was the first of its line.
  bool first() const { return first_; }

 private:
  bool Starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void Step() {
    if (text_[at_] == '\n' && (at_ == 0 || text_[at_ - 1] != '\\')) fresh_ = true;
    ++at_;
  }
  void Skip(std::string_view end, std::size_t from) {
    const std::size_t found = text_.find(end, at_ + from);
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
  }
  void SkipLiteral(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_)
      if (text_[at_] == '\\') ++at_;
    at_ = std::min(at_ + 1, text_.size());
  }
  void SkipRaw() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) {
      at_ = text_.size();
      return;
    }
    const std::string end = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    Skip(end, open - at_);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool fresh_ = true, first_ = true;
};

template <std::size_t N>
bool Has(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Words that stand for code without planted calls wherever they stand.
std::string RefusedWord(std::string_view word) {
  static constexpr std::array<std::string_view, 3> kAssembly = {"asm", "__asm", "__asm__"};
  if (Has(kAssembly, word)) return "assembly in host code is not allowed";
  for (const std::string_view part :
       {"no_sanitize", "no_instrument", "disable_sanitizer", "__builtin_mem", "__builtin_str",
        "__builtin_bcopy", "__builtin_bzero", "__builtin_ia32", "__builtin_prefetch",
        "__builtin___mem", "__builtin_alloca", "_mm_", "_mm256_", "_mm512_", "__tsan_",
        "__sanitizer_"})
    if (word.find(part) != std::string_view::npos)
      return fmt::format("'{}' in host code is not allowed: the judge cannot charge its time",
                         word);
  return {};
}

// What may stand in an attribute.
bool IsHarmlessAttribute(std::string_view word) {
  static constexpr std::array<std::string_view, 31> kHarmless = {"noinline",
                                                                 "always_inline",
                                                                 "inline",
                                                                 "aligned",
                                                                 "packed",
                                                                 "unused",
                                                                 "maybe_unused",
                                                                 "noreturn",
                                                                 "nodiscard",
                                                                 "fallthrough",
                                                                 "likely",
                                                                 "unlikely",
                                                                 "used",
                                                                 "const",
                                                                 "pure",
                                                                 "hot",
                                                                 "cold",
                                                                 "deprecated",
                                                                 "gnu",
                                                                 "visibility",
                                                                 "weak",
                                                                 "nothrow",
                                                                 "format",
                                                                 "nonnull",
                                                                 "returns_nonnull",
                                                                 "malloc",
                                                                 "warn_unused_result",
                                                                 "gnu_inline",
                                                                 "artificial",
                                                                 "no_unique_address",
                                                                 "vector_size"};
  while (word.starts_with('_')) word.remove_prefix(1);
  while (word.ends_with('_')) word.remove_suffix(1);
  return Has(kHarmless, word);
}

// The text of one piece of the candidate.
std::string RefusedPiece(std::string_view text) {
  Scanner scanner(text);
  std::string_view before;
  int attribute = 0;  // depth of brackets in it
  bool attributes = false, by_brackets = false;
  for (std::string_view word = scanner.Next(); !word.empty(); word = scanner.Next()) {
    if (word == "#" && scanner.first()) {
      const std::string_view directive = scanner.Next();
      const bool of_compiler = directive == "pragma" && scanner.Next() == "GCC";
      // nvcc writes some about diagnostics itself.
      const std::string_view what = of_compiler ? scanner.Next() : "diagnostic";
      if (what != "diagnostic")
        return fmt::format("#pragma GCC {} in host code is not allowed", what);
      before = {};
      continue;
    }
    if (std::string why = RefusedWord(word); !why.empty()) return why;
    if (!attributes && (word == "__attribute__" || word == "__attribute")) {
      attributes = true;
      by_brackets = false;
      attribute = 0;
    } else if (!attributes && word == "[" && before == "[") {
      attributes = by_brackets = true;
      attribute = 2;
    } else if (attributes) {
      const char open = by_brackets ? '[' : '(', close = by_brackets ? ']' : ')';
      if (word[0] == open) ++attribute;
      if (word[0] == close && --attribute == 0) attributes = false;
      // A lambda in an index, a[[]{...}()], is no attribute: it ends at its first other word.
      if (attributes && IsWordStart(word[0]) && !IsHarmlessAttribute(word)) {
        if (by_brackets && before != "[" && before != "," && before != ":") {
          attributes = false;
        } else if (attribute <= 2) {
          return fmt::format("the attribute '{}' in host code is not allowed", word);
        }
      }
    }
    before = word;
  }
  return {};
}

// Functions that host code may call: CUDA, what charges it, memory of its own, and what moves bytes
// by way of the charged ones. All others are code of libraries, which nobody charges.
bool IsKnown(std::string_view name) {
  static constexpr std::array<std::string_view, 40> kNames = {"memcpy",
                                                              "memmove",
                                                              "memset",
                                                              "_Znwm",
                                                              "_Znam",
                                                              "_ZdlPv",
                                                              "_ZdaPv",
                                                              "_ZdlPvm",
                                                              "_ZdaPvm",
                                                              "_ZnwmSt11align_val_t",
                                                              "_ZdlPvmSt11align_val_t",
                                                              "malloc",
                                                              "free",
                                                              "calloc",
                                                              "sched_yield",
                                                              "abort",
                                                              "atexit",
                                                              "exit",
                                                              "_exit",
                                                              "__assert_fail",
                                                              "_Unwind_Resume",
                                                              "__gxx_personality_v0",
                                                              "__stack_chk_fail",
                                                              "__dso_handle",
                                                              "_GLOBAL_OFFSET_TABLE_",
                                                              "__cxa_atexit",
                                                              "__cxa_guard_abort",
                                                              "__cxa_guard_acquire",
                                                              "__cxa_guard_release",
                                                              "__cxa_pure_virtual",
                                                              "__cxa_begin_catch",
                                                              "__cxa_end_catch",
                                                              "__cxa_rethrow",
                                                              "__cxa_throw",
                                                              "__cxa_allocate_exception",
                                                              "__cxa_free_exception",
                                                              "_ZSt9terminatev",
                                                              "_ZNSt8ios_base4InitC1Ev",
                                                              "_ZNSt8ios_base4InitD1Ev",
                                                              "__cxa_throw_bad_array_new_length"};
  if (Has(kNames, name)) return true;
  for (const std::string_view prefix :
       {"__tsan_", "__sanitizer_cov_trace_pc", "cuda", "__cuda", "_ZSt20__throw_", "_ZSt17__throw_",
        "_ZSt24__throw_", "_ZSt19__throw_", "_ZTV", "_ZTI", "_ZTS", "_ZN8allranks4Boot"})
    if (name.starts_with(prefix)) return true;
  return name.size() > 2 && name.starts_with("cu") &&
         std::isupper(static_cast<unsigned char>(name[2])) != 0;
}

// Names that belong to the judge's own parts of the program.
bool IsOurs(std::string_view name) {
  for (const std::string_view prefix : {"__tsan_", "__sanitizer_", "__wrap_", "__real_"})
    if (name.starts_with(prefix)) return true;
  return false;
}

}  // namespace

std::string RefusedSource(std::string_view source) {
  static constexpr std::array<std::string_view, 13> kDirectives = {
      "include", "define", "undef",  "if",    "ifdef",   "ifndef",      "else",
      "elif",    "endif",  "pragma", "error", "warning", "include_next"};
  Scanner scanner(source);
  for (std::string_view word = scanner.Next(); !word.empty(); word = scanner.Next()) {
    const bool first = scanner.first();
    if (first && word == "%" && scanner.Next() == ":")
      return "digraphs for directives are not allowed in this problem";
    if (!first || word != "#") continue;
    const std::string_view directive = scanner.Next();
    if (!scanner.first() && !Has(kDirectives, directive))
      return fmt::format("the directive '#{}' is not allowed in this problem", directive);
  }
  return {};
}

std::string RefusedHostText(std::string_view preprocessed, std::string_view file) {
  // Pieces of the text begin with lines like: # 12 "candidate.cu"
  bool own = false;
  int unused = 0;  // depth of #if within #if 0
  std::string piece;
  std::size_t at = 0;
  while (at < preprocessed.size()) {
    const std::size_t end = std::min(preprocessed.find('\n', at), preprocessed.size());
    const std::string_view line = preprocessed.substr(at, end - at);
    at = end + 1;
    // What cudafe++ takes out, the bodies of device code, stands there for people.
    if (line.starts_with("#if")) unused += unused != 0 || line == "#if 0" ? 1 : 0;
    if (line.starts_with("#endif") && unused != 0) --unused;
    const bool marker = line.size() > 3 && line[0] == '#' && line[1] == ' ' &&
                        std::isdigit(static_cast<unsigned char>(line[2])) != 0;
    if (!marker) {
      if (own && unused == 0) piece.append(line).push_back('\n');
      continue;
    }
    const std::size_t open = line.find('"'), close = line.rfind('"');
    if (open == std::string_view::npos || close <= open) continue;
    std::string_view name = line.substr(open + 1, close - open - 1);
    name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
    own = name == file;
  }
  return RefusedPiece(piece);
}

std::string RefusedSymbols(std::string_view symbols) {
  std::size_t at = 0;
  while (at < symbols.size()) {
    const std::size_t end = std::min(symbols.find('\n', at), symbols.size());
    std::string_view line = symbols.substr(at, end - at);
    at = end + 1;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || space + 1 >= line.size()) continue;
    const std::string_view name = line.substr(0, space);
    const char type = line[space + 1];
    const bool undefined = type == 'U' || type == 'w' || type == 'v';
    if (undefined && !IsKnown(name))
      return fmt::format(
          "host code calls '{}', which is not allowed: the judge can charge only CUDA and code "
          "that "
          "is compiled with the candidate",
          name);
    if (!undefined && IsOurs(name))
      return fmt::format("host code defines '{}', which is not allowed", name);
    if (type == 'i')
      return fmt::format("host code selects '{}' at load time, which is not allowed", name);
  }
  return {};
}

}  // namespace allranks::judge
