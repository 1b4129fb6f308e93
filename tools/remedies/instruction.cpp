#include "remedies/instruction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <utility>

namespace allranks::remedies {
namespace {

using Json = nlohmann::json;
using Kind = Statement::Kind;
using Rules = std::vector<std::pair<std::regex, std::string>>;

// A stretch of the source.
struct Part {
  std::size_t begin = 0, size = 0;
  bool simple = false;  // a statement without others in it
};

// Where to look, in this order: a statement's head if that is meant, simple statements in it that
// stand on the same line, then all of it.
std::vector<Part> PartsOf(const Source& source, const std::vector<Frame>& frames) {
  std::vector<Part> parts;
  for (const Frame& frame : frames) {
    const Statement& one = source.at(frame.statement);
    const bool first = one.kind == Kind::kIf || one.kind == Kind::kLoop;
    if (first ? frame.offset < one.head_end : source.InHead(frame.statement, frame.offset))
      parts.push_back({one.head_begin, one.head_end - one.head_begin, false});
    const std::size_t end = source.text().find('\n', frame.offset);
    for (const Statement& inner : source.statements())
      if (inner.kind == Kind::kSimple && inner.begin > one.begin && inner.end <= one.end &&
          inner.begin > frame.offset && inner.begin < end)
        parts.push_back({inner.begin, inner.end - inner.begin, true});
    parts.push_back({one.begin, one.end - one.begin, one.kind == Kind::kSimple});
  }
  return parts;
}

std::string Put(const Source& source, const Part& part, const std::string& made) {
  std::string text = source.text();
  return text.replace(part.begin, part.size, made);
}

// The first argument of the warp-wide operation.
std::string WithMask(std::string text, const std::string& to) {
  static const std::regex kCall(
      R"(\b__(?:shfl(?:_up|_down|_xor)?|ballot|any|all|match_any|match_all|reduce_\w+)_sync\s*\(|\b__syncwarp\s*\()");
  static const std::regex kAsm(R"((bar\.warp\.sync\s+)(0x[0-9a-fA-F]+|-1|\d+)(;))");
  std::smatch match;
  if (!std::regex_search(text, match, kCall))
    return std::regex_replace(text, kAsm, "$1" + to.substr(0, to.size() - 1) + "$3");
  const auto begin = static_cast<std::size_t>(match.position() + match.length());
  std::size_t end = begin;
  for (int depth = 0; end < text.size(); ++end) {
    const char c = text[end];
    if (depth == 0 && (c == ',' || c == ')')) break;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
  }
  return text.replace(begin, end - begin, to);
}

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return text;
}

// As libcu++ has it.
std::string ScopeWord(const std::string& scope) {
  return scope == "sys" ? "system" : scope == "cta" ? "block" : "device";
}

bool IsOrder(const std::string& word) {
  return word == "relaxed" || word == "acquire" || word == "release";
}

Rules RulesFor(const std::string& from, const std::string& to) {
  if (IsOrder(from)) {
    return {{std::regex("\\." + from + "\\b"), "." + to},
            {std::regex("memory_order_" + from), "memory_order_" + to},
            {std::regex("__ATOMIC_" + Upper(from)), "__ATOMIC_" + Upper(to)}};
  }
  if (from == "acq_rel") {
    return {{std::regex(R"(\bfence\.acq_rel\b)"), "fence." + to},
            {std::regex(R"(memory_order_acq_rel)"), "memory_order_seq_cst"}};
  }
  if (from == ".nc") return {{std::regex(R"(\.nc\b)"), ""}, {std::regex(R"(__ldg\()"), "*("}};
  const std::string suffix = to == "sys" ? "_system" : "";
  const std::string fence = to == "sys" ? "__threadfence_system()" : "__threadfence()";
  return {{std::regex("\\." + from + "\\b"), "." + to},
          {std::regex(R"(\b(atomic[A-Z][A-Za-z]*?)(_block)?\()"), "$1" + suffix + "("},
          {std::regex(R"(\b__threadfence(_block)?\(\))"), fence},
          {std::regex("thread_scope_" + ScopeWord(from)), "thread_scope_" + ScopeWord(to)},
          {std::regex(R"(\b(atom|red)((?:\.(?:relaxed|acquire|release|acq_rel))?)\.global)"),
           "$1$2." + to + ".global"}};
}

std::string ByRules(const std::string& old, const Rules& rules) {
  // The order of a failure comes second, and stays.
  const auto flags = old.find("compare_exchange") == std::string::npos
                         ? std::regex_constants::format_default
                         : std::regex_constants::format_first_only;
  for (const auto& [pattern, with] : rules) {
    std::string made = std::regex_replace(old, pattern, with, flags);
    if (made != old) return made;
  }
  return old;
}

// Where the instruction does not say it: the type or the parameter does.
std::string ByDeclaration(const std::string& text, const std::string& from, const std::string& to) {
  static const std::regex kRestrict(R"(__restrict__)");
  if (from == ".nc") return std::regex_replace(text, kRestrict, "");
  // Objects that only a block uses keep their scope.
  const std::regex scope(R"(\b((?:atomic|atomic_ref)\s*<[^;{}]*?thread_scope_))" + ScopeWord(from) +
                         "\\b");
  const std::string made = std::regex_replace(text, scope, "$1" + ScopeWord(to));
  if (made != text) return made;
  return std::regex_replace(text, std::regex("thread_scope_" + ScopeWord(from) + "\\b"),
                            "thread_scope_" + ScopeWord(to));
}

// A store of a whole vector type, which has no volatile assignment, becomes an instruction.
std::string MadeVector(const std::string& old, const std::string& form) {
  static const std::regex kStore(R"(^([^=;]*?[\w\])])\s*=([^=][^;]*);$)");
  static const std::regex kForm(R"(^st\.(?:global\.)?v([24])\.([a-z])(\d+)$)");
  std::smatch match, store;
  if (!std::regex_match(form, match, kForm) || !std::regex_match(old, store, kStore)) return old;
  const bool wide = match[3] == "64";
  const char constraint = match[2] == "f" ? (wide ? 'd' : 'f') : (wide ? 'l' : 'r');
  std::string places, values;
  for (int i = 0; i < std::stoi(match[1]); ++i) {
    places += fmt::format("{}%{}", i == 0 ? "" : ", ", i + 1);
    values += fmt::format(", \"{}\"(v_.{})", constraint, "xyzw"[i]);
  }
  return fmt::format(
      "{{ const auto v_ = {}; asm volatile(\"st.volatile.v{}.{}{} [%0], {{{}}};\" :: "
      "\"l\"(&({})){} "
      ": \"memory\"); }}",
      store[2].str(), match[1].str(), match[2].str(), match[3].str(), places, store[1].str(),
      values);
}

// A weak access by the language becomes a volatile one.
std::string MadeVolatile(const std::string& old, const std::string& form) {
  static const std::regex kStore(R"(^((?:\w+\s+)?)([^=;]*?[\w\])])\s*=([^=][^;]*;)$)");
  static const std::regex kLoad(R"(([=(,]|return)\s*\*\s*(\w+))");
  // The value is an element or a member, and nothing else.
  static const std::regex kElement(R"((=|return)\s*(\w+(?:(?:\.|->)\w+|\[[^\[\]()=;]*\])+)\s*;$)");
  if (form.find(".v2.") != std::string::npos || form.find(".v4.") != std::string::npos)
    return MadeVector(old, form);
  if (form.starts_with("st"))
    return std::regex_replace(old, kStore, "*(volatile std::decay_t<decltype($2)>*)&($2) =$3");
  if (!form.starts_with("ld")) return old;
  std::string made =
      std::regex_replace(old, kLoad, "$1 *(const volatile std::decay_t<decltype(*$2)>*)($2)");
  if (made != old) return made;
  return std::regex_replace(old, kElement,
                            "$1 *(const volatile std::decay_t<decltype($2)>*)&($2);");
}

// A weak access becomes a strong one: in an instruction, or by volatile.
Result<Replaced> Strengthen(const Json& edit, const Source& source,
                            const std::vector<Frame>& frames) {
  static const std::regex kInstruction(R"("(st|ld)\.(?:weak\.)?(global|shared|v2|v4|[uabsf]\d))");
  const std::string to = edit.value("text", ""), form = edit.value("form", "");
  for (const Part& part : PartsOf(source, frames)) {
    const std::string old = source.text().substr(part.begin, part.size);
    std::string made = std::regex_replace(old, kInstruction, "\"$1." + to + ".$2");
    if (made != old) return Replaced{Put(source, part, made), ""};
    if (part.simple) made = MadeVolatile(old, form);
    // volatile has no order.
    if (made != old) return Replaced{Put(source, part, made), to.starts_with("relaxed") ? "" : to};
  }
  return Fail("nothing to make strong at {}", edit["at"].dump());
}

// The scope of an instruction: what makes a fence as wide as its order would be.
std::string ScopeOf(const std::string& form) {
  for (const char* scope : {"cta", "cluster", "gpu"})
    if (form.find("." + std::string(scope)) != std::string::npos) return scope;
  return "sys";
}

// Functions that are named by their order and scope are there to choose from: the caller calls
// another one. Empty: there is no such function.
std::string BySibling(const Json& edit, const Source& source, const std::vector<Frame>& frames) {
  const std::string from = edit.value("from", ""), to = edit.value("text", "");
  const Json& place = edit["at"].front();
  if (from.empty() || to.empty() || !place["function"].is_string()) return "";
  const std::string name = Simple(place.value("function", ""));
  for (const bool capital : {true, false}) {
    const auto word = [&](std::string text) {
      if (capital) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
      return text;
    };
    const std::size_t at = name.find(word(from));
    if (at == std::string::npos) continue;
    const std::string other = std::string(name).replace(at, from.size(), word(to));
    if (!std::regex_search(source.text(), std::regex("\\b" + other + "\\s*\\("))) continue;
    for (const Part& part : PartsOf(source, frames)) {
      const std::string old = source.text().substr(part.begin, part.size);
      const std::string made = std::regex_replace(old, std::regex("\\b" + name + "(?=\\s*\\()"),
                                                  other, std::regex_constants::format_first_only);
      if (made != old) return Put(source, part, made);
    }
  }
  return "";
}

}  // namespace

Result<Replaced> ReplacePart(const Json& edit, const Source& source,
                             const std::vector<Frame>& frames) {
  const std::string from = edit.value("from", ""), to = edit.value("text", "");
  if (from == "weak") return Strengthen(edit, source, frames);
  if (const std::string made = BySibling(edit, source, frames); !made.empty())
    return Replaced{made, ""};
  const Rules rules = from == "mask" ? Rules() : RulesFor(from, to);
  for (const Part& part : PartsOf(source, frames)) {
    const std::string old = source.text().substr(part.begin, part.size);
    const std::string made = from == "mask" ? WithMask(old, to) : ByRules(old, rules);
    if (made != old) return Replaced{Put(source, part, made), ""};
  }
  if (from == "mask") return Fail("no warp-wide operation at {}", edit["at"].dump());
  // The order has another name there, or none.
  if (IsOrder(from)) return Replaced{source.text(), to + "." + ScopeOf(edit.value("form", ""))};
  const std::string made = ByDeclaration(source.text(), from, to);
  // Another edit has changed the declaration that both have.
  const bool done =
      source.text().find("thread_scope_" + ScopeWord(to)) != std::string::npos && from != ".nc";
  if (made == source.text() && !done) return Fail("nothing to replace at {}", edit["at"].dump());
  return Replaced{made, ""};
}

}  // namespace allranks::remedies
