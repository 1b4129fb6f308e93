#include "remedies/source.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>

namespace allranks::remedies {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The expression that a text begins with.
std::string UpToComma(std::string text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ')' || text[i] == ']' || text[i] == '}') --depth;
    if (depth < 0 || (depth == 0 && (text[i] == ',' || text[i] == ';'))) {
      text.resize(i);
      break;
    }
  }
  return text;
}

}  // namespace

Source::Source(std::string text) : text_(std::move(text)) {
  for (std::size_t i = 0; i < text_.size();) {
    const char c = text_[i];
    std::size_t end = i + 1;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
      continue;
    }
    if (text_.compare(i, 2, "//") == 0 || (c == '#' && (i == 0 || text_[i - 1] == '\n'))) {
      while (end < text_.size() && !(text_[end] == '\n' && text_[end - 1] != '\\')) ++end;
      i = end;
      continue;
    }
    if (text_.compare(i, 2, "/*") == 0) {
      end = text_.find("*/", i);
      i = end == std::string::npos ? text_.size() : end + 2;
      continue;
    }
    if (c == '"' || (c == '\'' && (i == 0 || !IsWord(text_[i - 1])))) {
      while (end < text_.size() && text_[end] != c) end += text_[end] == '\\' ? 2 : 1;
      ++end;
    } else if (IsWord(c)) {
      while (end < text_.size() && (IsWord(text_[end]) || text_[end] == '\'')) ++end;
    }
    tokens_.push_back({i, std::min(end, text_.size())});
    i = end;
  }
  ParseScope(0, tokens_.size());
}

std::size_t Source::Closing(std::size_t token) const {
  int depth = 0;
  for (std::size_t i = token; i < tokens_.size(); ++i) {
    const std::string_view word = Word(i);
    if (word == "(" || word == "{" || word == "[") ++depth;
    if (word == ")" || word == "}" || word == "]") {
      if (--depth == 0) return i;
    }
  }
  return tokens_.size() - 1;
}

int Source::Add(Statement::Kind kind, std::size_t token, int parent) {
  Statement made;
  made.kind = kind;
  made.begin = made.end = tokens_[token].begin;
  made.parent = parent;
  statements_.push_back(made);
  return static_cast<int>(statements_.size()) - 1;
}

// Namespaces, classes, functions: up to `end`.
void Source::ParseScope(std::size_t begin, std::size_t end) {
  std::size_t head = begin;
  for (std::size_t i = begin; i < end; ++i) {
    const std::string_view word = Word(i);
    if (word == ";") {
      head = i + 1;
    } else if (word == "(" || word == "[") {
      i = Closing(i);
    } else if (word == "{") {
      const std::size_t close = Closing(i);
      bool scope = false, assigned = false;
      std::string name;
      for (std::size_t k = head; k < i; ++k) {
        const std::string_view at = Word(k);
        scope |=
            at == "namespace" || at == "struct" || at == "class" || at == "union" || at == "extern";
        assigned |= at == "=";
        if (at == "(") {
          if (name.empty() && k > head && Word(k - 1) != "__launch_bounds__" &&
              Word(k - 1) != "__cluster_dims__" && Word(k - 1) != "__attribute__" &&
              Word(k - 1) != "alignas" && Word(k - 1) != "__align__")
            name = std::string(Word(k - 1));
          k = Closing(k);
        }
      }
      if (!name.empty() && !assigned) {
        const int function = Add(Statement::Kind::kFunction, head, -1);
        statements_.back().name = name;
        statements_.back().body = tokens_[i].end;
        for (std::size_t k = i + 1; k < close;) k = Parse(k, function);
        statements_[static_cast<std::size_t>(function)].end = tokens_[close].end;
      } else if (scope) {
        ParseScope(i + 1, close);
      }
      i = close;
      head = i + 1;
    }
  }
}

std::size_t Source::Parse(std::size_t token, int parent) {
  const std::string_view word = Word(token);
  const auto ends = [&](int statement, std::size_t next) {
    statements_[static_cast<std::size_t>(statement)].end = tokens_[next - 1].end;
    return next;
  };
  const auto head = [&](int statement, std::size_t open) {
    const std::size_t close = Closing(open);
    statements_[static_cast<std::size_t>(statement)].head_begin = tokens_[open].begin;
    statements_[static_cast<std::size_t>(statement)].head_end = tokens_[close].end;
    return close + 1;
  };
  if (word == "{") {
    const int block = Add(Statement::Kind::kBlock, token, parent);
    const std::size_t close = Closing(token);
    for (std::size_t k = token + 1; k < close;) k = Parse(k, block);
    return ends(block, close + 1);
  }
  if (word == "if") {
    const int made = Add(Statement::Kind::kIf, token, parent);
    std::size_t next = head(made, Word(token + 1) == "constexpr" ? token + 2 : token + 1);
    next = Parse(next, made);
    if (Word(next) == "else") next = Parse(next + 1, made);
    return ends(made, next);
  }
  if (word == "for" || word == "while" || word == "switch") {
    const int made = Add(Statement::Kind::kLoop, token, parent);
    return ends(made, Parse(head(made, token + 1), made));
  }
  if (word == "do") {
    const int made = Add(Statement::Kind::kDo, token, parent);
    const std::size_t next = Parse(token + 1, made);  // while
    return ends(made, head(made, next + 1) + 1);
  }
  const int made = Add(Statement::Kind::kSimple, token, parent);
  std::size_t i = token;
  int depth = 0;
  for (; i < tokens_.size(); ++i) {
    const std::string_view at = Word(i);
    if (at == ";" && depth == 0) break;
    if (at == ":" && (Word(token) == "case" || Word(token) == "default")) break;
    if (at == "}" && depth == 0) {
      --i;
      break;
    }
    // The statements of a lambda are statements, too.
    const std::string_view last = i > token ? Word(i - 1) : std::string_view();
    if (at == "{" && (last == ")" || last == "]")) {
      i = Parse(i, made) - 1;
      continue;
    }
    if (at == "(" || at == "{" || at == "[") ++depth;
    if (at == ")" || at == "}" || at == "]") --depth;
  }
  return ends(made, std::max(i + 1, token + 1));
}

std::size_t Source::Offset(int line, int column) const {
  std::size_t at = 0;
  for (int i = 1; i < line && at < text_.size(); ++i) {
    const std::size_t end = text_.find('\n', at);
    if (end == std::string::npos) return text_.size();
    at = end + 1;
  }
  const std::size_t end = std::min(text_.find('\n', at), text_.size());
  std::size_t offset = std::min(at + static_cast<std::size_t>(std::max(column - 1, 0)), end);
  while (offset < end && std::isspace(static_cast<unsigned char>(text_[offset])) != 0) ++offset;
  return offset;
}

int Source::Find(std::size_t offset) const {
  int found = -1;
  for (std::size_t i = 0; i < statements_.size(); ++i) {
    const Statement& one = statements_[i];
    if (one.begin <= offset && offset < one.end &&
        (found < 0 || one.end - one.begin <= at(found).end - at(found).begin)) {
      found = static_cast<int>(i);
    }
  }
  return found;
}

int Source::Function(int statement) const {
  while (statement >= 0 && at(statement).kind != Statement::Kind::kFunction)
    statement = at(statement).parent;
  return statement;
}

int Source::Named(std::string_view name) const {
  for (std::size_t i = 0; i < statements_.size(); ++i)
    if (statements_[i].kind == Statement::Kind::kFunction && statements_[i].name == name)
      return static_cast<int>(i);
  return -1;
}

bool Source::Encloses(int outer, int inner) const {
  for (int up = inner; up >= 0; up = at(up).parent)
    if (up == outer) return true;
  return false;
}

// Whether a name that is made there means the same at the statement. What a loop's head declares
// is gone behind the loop.
bool Source::Seen(std::size_t made, int statement) const {
  const int there = Find(made);
  if (there < 0 || at(there).kind != Statement::Kind::kLoop || !InHead(there, made)) return true;
  static const std::regex kDeclares(R"(^\(\s*(?:const\s+)?[\w:]+\s+\w+\s*=)");
  const std::string head = text_.substr(at(there).head_begin, made + 64 - at(there).head_begin);
  return !std::regex_search(head, kDeclares) || Encloses(there, statement);
}

// Whether threads of a group get different values in the statement's head: by way of names that
// are made of threadIdx.
bool Source::Varies(int statement, Group group) const {
  static const std::regex kNames(R"([A-Za-z_]\w*)");
  static const std::regex kMade(R"(([A-Za-z_]\w*)\s*=\s*([^=;][^;]*))");
  static const std::regex kWhole(R"(threadIdx\.x\s*(/|>>)\s*\w+)");
  static const std::regex kOwn(R"(^\(\s*(?:const\s+)?[\w:]+\s+(\w+)\s*=)");
  std::set<std::string> names = {"threadIdx", "lane",   "laneid",      "lane_id",
                                 "tid",       "thread", "thread_rank", "lanes"};
  if (group != Group::kWarp) names.insert({"warp", "warp_id", "warpid"});
  if (group == Group::kGrid) names.insert({"blockIdx", "block_rank"});
  const auto varies = [&](std::string text) {
    // What all lanes of a warp have in common.
    if (group == Group::kWarp) text = std::regex_replace(text, kWhole, "warpIndex");
    for (std::sregex_iterator it(text.begin(), text.end(), kNames), end; it != end; ++it)
      if (names.contains(it->str())) return true;
    return false;
  };
  if (const int function = Function(statement); function >= 0) {
    const std::string body(Text(at(function)));
    for (int round = 0; round < 3; ++round) {
      for (std::sregex_iterator it(body.begin(), body.end(), kMade), end; it != end; ++it) {
        // "int a = f(), b = threadIdx.x": each up to its comma.
        const std::string value = UpToComma((*it)[2].str());
        if (value.find("_sync(") == std::string::npos && varies(value) &&
            Seen(at(function).begin + static_cast<std::size_t>(it->position()), statement))
          names.insert((*it)[1].str());
      }
    }
  }
  const Statement& one = at(statement);
  const std::string head = text_.substr(one.head_begin, one.head_end - one.head_begin);
  // What the head declares itself is another one than before.
  if (std::smatch own; std::regex_search(head, own, kOwn) && one.kind == Statement::Kind::kLoop) {
    const std::string name = own[1];
    if (names.contains(name) && !varies(UpToComma(std::string(own.suffix())))) names.erase(name);
  }
  return varies(head);
}

bool Source::Divergent(int statement, Group group) const {
  const Statement& one = at(statement);
  if (one.kind != Statement::Kind::kIf && one.kind != Statement::Kind::kLoop &&
      one.kind != Statement::Kind::kDo) {
    return false;
  }
  return Varies(statement, group);
}

bool Source::Wrapper(int function) const {
  int simple = 0;
  for (std::size_t i = 0; i < statements_.size(); ++i) {
    const Statement& one = statements_[i];
    if (Function(static_cast<int>(i)) != function || static_cast<int>(i) == function) continue;
    if (one.kind != Statement::Kind::kSimple) return false;
    ++simple;
  }
  const std::string_view text = Text(at(function));
  return simple <= 1 || (simple <= 4 && text.find("asm") != std::string_view::npos);
}

std::string Simple(const std::string& function) {
  if (function.find("lambda") != std::string::npos) return "";
  std::string name = function.substr(0, function.find('('));
  name = name.substr(0, name.find('<'));
  if (const std::size_t at = name.find_last_of(" :"); at != std::string::npos)
    name = name.substr(at + 1);
  return name;
}

}  // namespace allranks::remedies
