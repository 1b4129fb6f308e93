// Mutation operators: small bugs of communication code, made at the tagged places of a reference.
// They work on text, so that a reader of the mutant sees the one thing that is wrong.
#include <functional>
#include <regex>

#include "problem/reader.h"
#include "problem/source.h"
#include "problem/statements.h"

namespace allranks::problem {
namespace {

std::string ReplaceAll(const std::string& text, const char* pattern, const char* by) {
  return std::regex_replace(text, std::regex(pattern), by);
}

std::string Masked(const std::string& code) {
  std::string mask;
  for (std::size_t at = 0; at <= code.size();) {
    const std::size_t end = std::min(code.find('\n', at), code.size());
    mask += SplitLine(code.substr(at, end - at)).mask;
    if (end < code.size()) mask += '\n';
    at = end + 1;
  }
  return mask;
}

bool IsFence(const std::string& code) {
  return std::regex_search(code, std::regex("\"\\s*(fence|membar)\\."));
}

std::string Relax(const std::string& code) {
  if (IsFence(code)) return ReplaceAll(code, "asm[\\s\\S]*;", ";");
  std::string text = ReplaceAll(code, "\\.(acq_rel|release|acquire)\\b", ".relaxed");
  text = ReplaceAll(text, "__threadfence(_system|_block)?\\(\\)", "(void)0");
  text = ReplaceAll(text, "memory_order(_|::)(seq_cst|acq_rel|release|acquire|consume)\\b",
                    "memory_order$1relaxed");
  text = ReplaceAll(text, "(acq_rel|release|acquire)(\\w*)(?=\\s*[(<])", "relaxed$2");
  return ReplaceAll(text, "(AcqRel|Release|Acquire)(\\w*)(?=\\s*[(<])", "Relaxed$2");
}

std::string Weaken(const std::string& code) {
  std::string text =
      ReplaceAll(code, "\\.(relaxed|acquire|release|acq_rel)\\.(sys|gpu|cluster|cta)\\b", "");
  return ReplaceAll(text, "\\.(volatile|mmio)\\b", "");
}

std::string Narrow(const std::string& code) {
  std::string text = ReplaceAll(code, "\\.sys\\b", ".gpu");
  text = ReplaceAll(text, "__threadfence_system\\b", "__threadfence");
  text = ReplaceAll(text, "\\b(atomic\\w+)_system\\b", "$1");
  text = ReplaceAll(text, "thread_scope_system\\b", "thread_scope_device");
  text = ReplaceAll(text, "_sys\\b", "_gpu");
  text = ReplaceAll(text, "Sys(?=[A-Z(<])", "Gpu");
  if (text != code) return text;
  text = ReplaceAll(text, "\\.gpu\\b", ".cta");
  text = ReplaceAll(text, "(acquire|release|relaxed|acq_rel|sc)\\.cluster\\b", "$1.cta");
  text = ReplaceAll(text, "__threadfence\\(", "__threadfence_block(");
  text = ReplaceAll(text, "thread_scope_device\\b", "thread_scope_block");
  text = ReplaceAll(text, "_gpu\\b", "_cta");
  text = ReplaceAll(text, "Gpu(?=[A-Z(<])", "Cta");
  if (text != code) return text;
  return ReplaceAll(text, "__syncthreads\\(", "__syncwarp(");
}

struct Place {
  std::size_t at = 0, length = 0;
};

// The first comparison with blanks around it, which tells it from templates and shifts.
std::optional<Place> Comparison(const std::string& mask, bool with_equality) {
  const std::regex pattern(with_equality ? " (<=|>=|==|!=|<|>) " : " (<=|>=|<|>) ");
  std::smatch match;
  if (!std::regex_search(mask, match, pattern)) return std::nullopt;
  return Place{static_cast<std::size_t>(match.position(1)),
               static_cast<std::size_t>(match.length(1))};
}

// From `at` to where an operand ends: a bracket that was open before, ; , ? : && || at its depth.
std::size_t OperandEnd(const std::string& mask, std::size_t at, bool to_semicolon) {
  int depth = 0;
  for (; at < mask.size(); ++at) {
    const char c = mask[at];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && depth-- == 0) return at;
    if (depth > 0) continue;
    if (c == ';' || c == ',') return at;
    if (!to_semicolon &&
        (c == '?' || mask.compare(at, 2, "&&") == 0 || mask.compare(at, 2, "||") == 0)) {
      return at;
    }
  }
  return at;
}

Place Trimmed(const std::string& mask, std::size_t begin, std::size_t end) {
  while (begin < end && std::isspace(static_cast<unsigned char>(mask[begin]))) ++begin;
  while (end > begin && std::isspace(static_cast<unsigned char>(mask[end - 1]))) --end;
  return {begin, end - begin};
}

std::optional<Place> BoundOf(const std::string& mask, bool with_equality) {
  const auto comparison = Comparison(mask, with_equality);
  if (!comparison) return std::nullopt;
  const std::size_t begin = comparison->at + comparison->length;
  return Trimmed(mask, begin, OperandEnd(mask, begin, false));
}

std::optional<Place> LastArgument(const std::string& mask) {
  if (std::regex_search(mask, std::regex("\\basm\\b"))) return std::nullopt;
  const std::size_t close = mask.rfind(");");
  if (close == std::string::npos) return std::nullopt;
  int depth = 0;
  for (std::size_t at = close; at-- > 0;) {
    const char c = mask[at];
    if (c == ')' || c == ']' || c == '}') ++depth;
    if (c == '(' || c == '[' || c == '{') --depth;
    if (depth < 0 || (depth == 0 && c == ',')) {
      const Place place = Trimmed(mask, at + 1, close);
      return place.length == 0 ? std::nullopt : std::optional(place);
    }
  }
  return std::nullopt;
}

// The number that counts in a statement: the bound of its comparison, else what is assigned or
// returned, else the last argument of its call. An equality counts only in a loop or if there is
// nothing else: it mostly says which thread does it.
std::optional<Place> Amount(const std::string& mask) {
  const bool loop = std::regex_search(mask, std::regex("^\\s*(\\}\\s*while|while|for)\\b"));
  if (const auto bound = BoundOf(mask, loop)) return bound;
  std::smatch match;
  if (std::regex_search(mask, match, std::regex(" [-+*/%|&^]?= |\\breturn "))) {
    const auto begin = static_cast<std::size_t>(match.position() + match.length());
    return Trimmed(mask, begin, OperandEnd(mask, begin, true));
  }
  if (const auto argument = LastArgument(mask)) return argument;
  return BoundOf(mask, true);
}

std::string WithAmount(const std::string& code,
                       const std::function<std::string(const std::string&)>& change) {
  const auto place = Amount(Masked(code));
  if (!place || place->length == 0) return code;
  std::string text = code;
  return text.replace(place->at, place->length, change(code.substr(place->at, place->length)));
}

std::string Equal(const std::string& code) {
  const auto place = Comparison(Masked(code), false);
  if (!place) return code;
  const std::string op = code.substr(place->at, place->length);
  std::string text = code;
  return text.replace(place->at, place->length, op.size() == 2 ? "==" : "!=");
}

std::string Stale(const std::string& code) {
  std::string text = ReplaceAll(code, "\\+\\+", "");
  text = ReplaceAll(text, "\\+= 1[uUlL]*\\b", "+= 0");
  return ReplaceAll(text, " \\+ 1[uUlL]*\\b", "");
}

// The condition of the first if, while or for.
std::optional<Place> Condition(const std::string& mask) {
  std::smatch match;
  if (!std::regex_search(mask, match, std::regex("\\b(if|while|for) ?(constexpr )?\\("))) {
    return std::nullopt;
  }
  auto begin = static_cast<std::size_t>(match.position() + match.length());
  if (match[1] == "for") {
    begin = mask.find(';', begin);
    if (begin == std::string::npos) return std::nullopt;
    ++begin;
  }
  int depth = 0;
  for (std::size_t at = begin; at < mask.size(); ++at) {
    if (mask[at] == '(') ++depth;
    if ((mask[at] == ')' && depth-- == 0) || (mask[at] == ';' && depth == 0))
      return Trimmed(mask, begin, at);
  }
  return std::nullopt;
}

std::string WithCondition(const std::string& code,
                          const std::function<std::string(const std::string&)>& change) {
  const auto place = Condition(Masked(code));
  if (!place) return code;
  std::string text = code;
  return text.replace(place->at, place->length, change(code.substr(place->at, place->length)));
}

std::string Once(const std::string& code) {
  if (std::regex_search(code, std::regex("^\\s*\\}\\s*while\\b")))
    return WithCondition(code, [](const std::string&) { return "false"; });
  return std::regex_replace(code, std::regex("\\bwhile \\("), "if (",
                            std::regex_constants::format_first_only);
}

using Change = std::function<std::string(const std::string&)>;

// Operators that rewrite a statement where it stands.
const std::vector<std::pair<std::string, Change>>& Rewriters() {
  const auto amount = [](std::string before, std::string after) -> Change {
    return [=](const std::string& code) {
      return WithAmount(code, [&](const std::string& value) { return before + value + after; });
    };
  };
  const auto condition = [](const Change& change) -> Change {
    return [=](const std::string& code) { return WithCondition(code, change); };
  };
  static const std::vector<std::pair<std::string, Change>> kAll = {
      {"relax", Relax},
      {"weak", Weaken},
      {"narrow", Narrow},
      {"equal", Equal},
      {"less", amount("(", ") - 1")},
      {"more", amount("(", ") + 1")},
      {"half", amount("(", ") / 2")},
      {"zero",
       [](const std::string& code) {
         return WithAmount(code, [](const std::string&) { return "0"; });
       }},
      {"stale", Stale},
      {"once", Once},
      {"always", condition([](const std::string&) { return "true"; })},
      {"never", condition([](const std::string&) { return "false"; })},
      {"invert", condition([](const std::string& value) { return "!(" + value + ")"; })},
  };
  return kAll;
}

// Operators on whole statements. False: there is nothing to do it with.
bool Rearrange(Statements* statements, Span statement, const std::string& op) {
  const auto whole = statements->WithBlock(statement);
  if (!whole) return false;
  if (op == "late" || op == "swap") return statements->MoveDown(*whole);
  if (op == "early") return statements->MoveUp(*whole);
  if (op == "twice") {
    statements->Duplicate(*whole);
  } else {
    statements->Drop(*whole);
  }
  return true;
}

}  // namespace

const std::vector<std::string>& Operators() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names = {"drop", "swap", "late", "early", "twice"};
    for (const auto& [name, change] : Rewriters()) names.push_back(name);
    return names;
  }();
  return kNames;
}

Result<std::string> ApplyOperator(std::string_view text, const std::string& tag,
                                  const std::string& op) {
  Statements statements(text);
  const std::vector<std::string> tags = statements.Tags();
  const Change* rewrite = nullptr;
  for (const auto& [name, change] : Rewriters()) {
    if (name == op) rewrite = &change;
  }
  bool changed = false, any = false;
  while (const auto line = statements.TakeTag(tag)) {
    any = true;
    const Span statement = statements.StatementAt(*line);
    if (rewrite == nullptr) {
      if (!Rearrange(&statements, statement, op))
        return Fail("{} cannot be applied to the statement of line {}", op, *line + 1);
      changed = true;
      continue;
    }
    const std::string before = statements.CodeOf(statement);
    const std::string after = (*rewrite)(before);
    if (after == before) continue;
    statements.Replace(statement, after);
    changed = true;
  }
  if (!any) return Fail("no line has the tag //@{}; the tags are {}", tag, Join(tags));
  if (!changed) return Fail("{} changes nothing at the tag //@{}", op, tag);
  return statements.Text();
}

}  // namespace allranks::problem
