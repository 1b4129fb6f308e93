// The operators, and the places that they fit. A mutant of a function that is called at several
// places is also made for each of its calls alone: a copy of the function has the bug.
#include "mutants/seed.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "problem/statements.h"

namespace allranks::mutants {
namespace {

using problem::Line;
using problem::Span;
using problem::Statements;

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string TextOf(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

// Each is compiled once: that costs far more than to search a line for it.
const std::regex& Compiled(const std::string& pattern) {
  thread_local std::map<std::string, std::regex> all;
  const auto found = all.find(pattern);
  return found != all.end() ? found->second : all.emplace(pattern, pattern).first->second;
}

bool Has(const std::string& text, const char* pattern) {
  return std::regex_search(text, Compiled(pattern));
}

struct Function {
  std::string name;
  std::size_t first = 0, last = 0;
  std::vector<std::size_t> calls;  // lines
};

// One change of a line: what matches is replaced.
struct Rewrite {
  const char* op;
  const char* where;    // the line has this
  const char* without;  // and not this; may be empty
  const char* match;
  const char* by;
};

constexpr char kWaits[] =
    "asm volatile|Look\\(|Load(Acquire|Relaxed)|\\*seen|->taken|->flag|atomic";

const Rewrite kRewrites[] = {
    // Orders.
    {"relax", "\"", "fence", "\\.(release|acquire|acq_rel)(?=\\.(sys|gpu))", ".relaxed"},
    {"weaken", "\"(\\{ )?(ld|st)\\.", "", "\\.(relaxed|release|acquire)\\.(sys|gpu)", ""},
    {"weaken", "volatile", "asm", "\\bvolatile ", ""},
    {"drop_fence", "", "", "__threadfence(_system|_block)?\\(\\);", ";"},
    {"drop_fence", "\"(fence|membar)\\.", "alias", "asm volatile\\([^;]*;[^;]*;", ";"},
    // Scopes.
    {"narrow", "\"", "", "\\.sys\\b", ".gpu"},
    {"narrow", "", "", "__threadfence_system\\(\\)", "__threadfence()"},
    {"narrow_cta", "", "", "__threadfence(_system)?\\(\\)", "__threadfence_block()"},
    {"narrow", "", "", "\\b(atomic\\w+)_system\\(", "$1("},
    {"narrow_cta", "", "", "\\b(atomic[A-Z][a-z]*[A-Z]?[a-z]*)(_system)?\\(", "$1_block("},
    {"plain_add", "", "", "atomicAdd\\((&?[\\w>-]+), (\\w+)\\)", "((*($1) += $2) - $2)"},
    // Barriers.
    {"drop_barrier", "", "", "__sync(threads|warp)\\(\\);", ";"},
    {"drop_barrier", "\"barrier\\.sync", "", "asm volatile\\([^;]*;[^;]*;", ";"},
    {"drop_barrier", "", "", "allranks::TileProduct::Meet\\(\\);", ";"},
    {"narrow_mask", "", "", "__syncwarp\\(\\)", "__syncwarp(0xffffu)"},
    {"narrow_mask", "", "", "_sync\\(~0u", "_sync(0xffffu"},
    // Waits.
    {"equal", "while \\(", "", " < 0\\)", " != 0)"},
    {"equal", "while \\(", "", " < call\\)", " != call)"},
    {"equal", "while \\(", "", " >= (?=k)", " == "},
    {"early_wait", "while \\(", "", " < 0\\)", " < -1)"},
    {"early_wait", "while \\(", "", " < call\\)", " < call - 1)"},
    {"early_wait", "while \\(", "", " (>=?) (k\\w+)\\)", " $1 $2 + 1)"},
    {"early_wait", "Meet\\(args, ", "__device__", " 2 \\* call", " 2 * call - 1"},
    {"less_peers", "arrived - ", "", "(call \\* args\\.world|complete)\\)", "($1 - 1))"},
    // Flags and buffers.
    {"reuse", "", "\\[call", "\\(call & 1\\)|\\bcall % [23]\\b|\\(call \\+ 2\\) % 3", "0"},
    {"wrong_slot", "", "", "\\[call % 2\\]", "[0]"},
    {"wrong_flag", "", "kMaxBlocks", "\\b(?!calls)(\\w+)\\[blockIdx\\.x\\]", "$1[0]"},
    {"wrong_flag", "->", "",
     "->(staged|steps|reached|done|entered|left|sent|finished)(\\[block"
     "Idx\\.x\\])?\\[threadIdx\\.x\\]",
     "->$1$2[0]"},
    // Bulk copies and their barriers.
    {"wrong_count", "mbarrier\\.init", "", "\\], 1;", "], 2;"},
    {"wrong_parity", "parity", "", "/ kStages & 1\\)", "/ kStages & 0)"},
    {"early_wait", "wait_group\\.read", "", "\\.read 1;", ".read 2;"},
    {"early_wait", "wait_group 0", "", "wait_group 0", "wait_group.read 0"},
    {"early_wait", "wait_group 0", "", "wait_group 0", "wait_group 1"},
    {"early_wait", "wait_group\\.read 0", "", "read 0", "read 1"},
    {"drop_wait", "\"cp\\.async\\.bulk\\.wait_group", "", "asm volatile\\([^;]*;[^;]*;", ";"},
    {"drop_commit", "bulk\\.commit_group", "", "asm volatile\\([^;]*;[^;]*;", ";"},
};

class Sower {
 public:
  Sower(std::string_view source, std::string_view before);
  std::vector<Seeded> Sow();

 private:
  struct Change {
    std::string op;
    std::size_t line = 0;  // where it is reported
    std::vector<std::string> lines;
  };

  bool Inside(std::size_t line) const { return line >= first_ && line < end_; }
  void FindFunctions();
  void Add(const std::string& op, std::size_t line, std::vector<std::string> lines);
  void RewriteLines();
  void RenameHelpers();
  void RewriteWaits();
  void MoveStatements();
  void SkipBarrier();
  void Everywhere();
  void AtEachCall();

  std::string before_;  // the region's file, up to it
  std::vector<std::string> lines_;
  std::vector<Line> split_;
  std::size_t first_ = 0, end_ = 0;  // of the region: between its markers, or all of it
  std::vector<Function> functions_;
  std::vector<Change> changes_;
  std::vector<Seeded> result_;
  std::map<std::string, int> places_;
  std::set<std::string> texts_;
};

Sower::Sower(std::string_view source, std::string_view before)
    : before_(before), lines_(LinesOf(source)) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    split_.push_back(problem::SplitLine(lines_[i]));
    if (lines_[i].starts_with("// >>> edit")) first_ = i + 1;
    if (lines_[i].starts_with("// <<< edit")) end_ = i;
  }
  if (first_ == 0) end_ = lines_.size();
  texts_.insert(TextOf(lines_));
  FindFunctions();
}

// Functions begin at the margin or, members, two blanks from it, and end with a brace at the same
// place.
void Sower::FindFunctions() {
  static const std::regex kHead("^( {0,2})__(device|global)__ .*?(\\w+)\\((const )?[\\w:*& ]+");
  for (std::size_t i = first_; i < end_; ++i) {
    std::smatch match;
    if (!std::regex_search(split_[i].code, match, kHead)) continue;
    Function function;
    function.name = match[3];
    if (function.name == "__launch_bounds__") {
      if (!std::regex_search(split_[i].code, match, Compiled("^( {0,2}).*\\) (\\w+)\\(Args")))
        continue;
      function.name = match[2];
    }
    if (match[1].length() != 0) continue;
    function.first = function.last = i;
    while (function.last < end_ && lines_[function.last] != "}" &&
           !(function.last == i && lines_[i].ends_with("}")))
      ++function.last;
    functions_.push_back(function);
  }
  for (Function& function : functions_) {
    const std::regex call("\\b" + function.name + "(\\(|<<<)");
    for (std::size_t i = first_; i < end_; ++i) {
      if (i >= function.first && i <= function.last) continue;
      if (std::regex_search(split_[i].mask, call)) function.calls.push_back(i);
    }
  }
}

void Sower::Add(const std::string& op, std::size_t line, std::vector<std::string> lines) {
  std::string text = TextOf(lines);
  if (!texts_.insert(text).second) return;  // another operator has made the same
  const std::string place = std::to_string(line + 1);
  const int nth = places_[op + place]++;
  result_.push_back({op, nth == 0 ? place : place + "." + std::to_string(nth), std::move(text)});
  changes_.push_back({op, line, std::move(lines)});
}

void Sower::RewriteLines() {
  for (std::size_t i = first_; i < end_; ++i) {
    const std::string& code = split_[i].code;
    for (const Rewrite& rewrite : kRewrites) {
      if (!Has(code, rewrite.where)) continue;
      if (*rewrite.without != '\0' && Has(code, rewrite.without)) continue;
      const std::regex& match = Compiled(rewrite.match);
      for (std::sregex_iterator it(code.begin(), code.end(), match), none; it != none; ++it) {
        const auto at = static_cast<std::size_t>(it->position());
        std::vector<std::string> lines = lines_;
        lines[i] = code.substr(0, at) + it->format(rewrite.by) +
                   code.substr(at + static_cast<std::size_t>(it->length())) + split_[i].comment;
        Add(rewrite.op, i, std::move(lines));
      }
    }
  }
}

// Where the template offers weaker forms by name, a call takes one of those.
void Sower::RenameHelpers() {
  static const std::pair<const char*, std::pair<const char*, const char*>> kNames[] = {
      {"relax", {"StoreReleaseSys(", "StoreRelaxedSys("}},
      {"relax", {"LoadAcquireSys(", "LoadRelaxedSys("}},
      {"narrow", {"StoreReleaseSys(", "StoreReleaseGpu("}},
      {"narrow", {"LoadAcquireSys(", "LoadAcquireGpu("}},
  };
  for (const auto& [op, names] : kNames) {
    bool defined = before_.find(names.second) != std::string::npos;
    for (std::size_t i = 0; i < first_; ++i)
      defined = defined || lines_[i].find(names.second) != std::string::npos;
    if (!defined) continue;
    for (std::size_t i = first_; i < end_; ++i) {
      const std::size_t at = split_[i].mask.find(names.first);
      if (at == std::string::npos) continue;
      std::vector<std::string> lines = lines_;
      lines[i].replace(at, std::string(names.first).size(), names.second);
      Add(op, i, std::move(lines));
    }
  }
}

void Sower::RewriteWaits() {
  const Statements statements(TextOf(lines_));
  for (std::size_t i = first_; i < end_; ++i) {
    const std::size_t at = split_[i].mask.find("while (");
    if (at == std::string::npos) continue;
    const bool tail = split_[i].mask.find("} while (") != std::string::npos;
    Span block{i, i};
    if (tail) {
      while (block.first > first_ && !Has(lines_[block.first], "\\bdo \\{")) --block.first;
    } else if (const auto whole = statements.WithBlock(statements.StatementAt(i))) {
      block = *whole;
    }
    std::string code = statements.CodeOf(block);
    if (!Has(code, kWaits)) continue;
    const std::size_t close = split_[i].code.rfind(tail ? ");" : ")");
    if (close == std::string::npos || close < at) continue;
    const std::string condition = split_[i].code.substr(at + 7, close - at - 7);
    const auto with = [&](const std::string& other) {
      std::vector<std::string> lines = lines_;
      lines[i] = split_[i].code.substr(0, at + 7) + other + split_[i].code.substr(close) +
                 split_[i].comment;
      return lines;
    };
    // One look, whatever it shows.
    if (tail) {
      Add("wait_once", i, with("false"));
    } else {
      std::vector<std::string> lines = lines_;
      lines[i].replace(at, 5, "if");
      Add("wait_once", i, std::move(lines));
    }
    // Each thread waits for one peer: one of them does not.
    std::smatch match;
    std::string variable;
    for (std::size_t k = block.first; k > first_ && block.first - k < 8 && variable.empty(); --k) {
      if (std::regex_search(lines_[k], match,
                            Compiled("if \\((threadIdx\\.x|lane|token) < (args\\.)?world\\)")))
        variable = match[1];
    }
    if (variable.empty() && code.find("[threadIdx.x]") != std::string::npos)
      variable = "threadIdx.x";
    if (!variable.empty()) Add("skip_peer", i, with(variable + " != 1 && " + condition));
  }
}

// Nothing that a barrier or a flag could order: it only works out an address.
bool IsPure(const std::string& line) {
  return Has(line,
             "^\\s*(__shared__|const [\\w:]+\\*? \\w+ = (reinterpret_cast|Turn|\\w+;)|"
             "\\w+\\* \\w+ = reinterpret_cast|std::\\w+\\* \\w+ = |rows = )") &&
         !Has(line, "Load|atomic");
}

// Moves the statement of a line before its neighbour or behind it, and on if that only worked out
// an address.
std::vector<std::string> Moved(const std::vector<std::string>& original, std::size_t line,
                               bool up) {
  constexpr int kMost = 3;
  std::vector<std::string> lines = original;
  // Tags show where the statement has got to.
  for (int i = 0; i <= kMost; ++i) lines[line] += "//@moved" + std::to_string(i);
  Statements statements(TextOf(lines));
  bool moved = false, goes_on = true;
  for (int i = 0; i <= kMost; ++i) {
    const auto at = statements.TakeTag("moved" + std::to_string(i));
    if (!at || !goes_on || i == kMost) continue;
    const auto whole = statements.WithBlock(statements.StatementAt(*at));
    goes_on = whole && (up ? statements.MoveUp(*whole) : statements.MoveDown(*whole));
    moved = moved || goes_on;
    if (!goes_on) continue;
    const std::vector<std::string> now = LinesOf(statements.Text());
    std::size_t passed = 0;
    for (std::size_t k = 0; k < now.size(); ++k)
      if (now[k].find("//@moved") != std::string::npos && k > 0) passed = k - 1;
    goes_on = !up && IsPure(now[passed]);
  }
  return moved ? LinesOf(statements.Text()) : original;
}

void Sower::MoveStatements() {
  const Statements original(TextOf(lines_));
  const auto moved = [&](const char* op, std::size_t line, bool up) {
    std::vector<std::string> lines = Moved(lines_, line, up);
    if (lines != lines_) Add(op, line, std::move(lines));
  };
  const auto dropped = [&](const char* op, std::size_t line) {
    Statements statements(TextOf(lines_));
    const auto whole = statements.WithBlock(statements.StatementAt(line));
    if (!whole) return;
    statements.Drop(*whole);
    Add(op, line, LinesOf(statements.Text()));
  };
  for (std::size_t i = first_; i < end_; ++i) {
    const std::string& code = split_[i].code;
    if (Has(code, "^(__device__|__global__|struct|constexpr)")) continue;
    const Span span = original.StatementAt(i);
    if (span.first != i) continue;
    const std::string whole = original.CodeOf(span);
    if (Has(whole, "__sync(threads|warp)\\(\\);|\"barrier\\.sync|TileProduct::Meet")) {
      moved("late_barrier", i, false);
    }
    if (Has(whole, "__threadfence|\"fence\\.(acq_rel|sc)")) {
      moved("early_fence", i, true);
      moved("late_fence", i, false);
    }
    const bool flag = Has(whole,
                          "\"st\\.|\"multimem\\.red|StoreRe(lease|laxed)\\w*\\(|\\bSend\\(|"
                          "__atomic_store_n|->flags?(\\[slot\\])? = |\\*flag = ");
    if (flag) {
      moved("early_flag", i, true);
    }
    if (Has(whole, "\\b(Meet|Enter|Leave|Sent)(\\(args|<<<)")) dropped("drop_meeting", i);
    if (Has(whole, "cp\\.async\\.bulk\\.(wait_group|commit)|mbarrier\\.arrive|ring\\.Await")) {
      moved("early_copy", i, true);
      moved("late_copy", i, false);
    }
  }
}

// One thread stays away from the first barrier of the source.
void Sower::SkipBarrier() {
  for (std::size_t i = first_; i < end_; ++i) {
    const std::size_t at = split_[i].mask.find("__syncthreads();");
    if (at == std::string::npos) continue;
    std::vector<std::string> lines = lines_;
    lines[i].insert(at, "if (threadIdx.x != 1) ");
    Add("partial_barrier", i, std::move(lines));
    return;
  }
}

// The same at all places at once: consistent, and wrong.
void Sower::Everywhere() {
  static const Rewrite kAll[] = {
      {"reuse", "", "", "\\(call & 1\\)|\\bcall % 2\\b|\\bcall % 3\\b|\\(call \\+ 2\\) % 3", "0"},
      {"wrong_flag", "", "", "\\b(?!calls)(\\w+)\\[blockIdx\\.x\\]", "$1[0]"},
  };
  for (const Rewrite& rewrite : kAll) {
    std::vector<std::string> lines = lines_;
    std::optional<std::size_t> first;
    for (std::size_t i = first_; i < end_; ++i) {
      lines[i] = std::regex_replace(split_[i].code, Compiled(rewrite.match), rewrite.by) +
                 split_[i].comment;
      if (!first && lines[i] != lines_[i]) first = i;
    }
    if (first) Add(std::string(rewrite.op) + "_all", *first, std::move(lines));
  }
}

void Sower::AtEachCall() {
  for (const Change& change : changes_) {
    if (change.op != "relax" && change.op != "drop_barrier") continue;
    for (const Function& function : functions_) {
      if (change.line < function.first || change.line > function.last) continue;
      if (function.calls.size() < 2) continue;
      for (const std::size_t call : function.calls) {
        const std::regex name("\\b" + function.name + "(?=\\(|<<<)");
        const std::string other = function.name + "Here";
        std::vector<std::string> lines = lines_;
        lines[call] = std::regex_replace(lines[call], name, other);
        std::vector<std::string> copy;
        for (std::size_t i = function.first; i <= function.last; ++i)
          copy.push_back(std::regex_replace(change.lines[i], name, other));
        // Behind the original, on one line, so that all others keep their numbers.
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(function.last) + 1, copy.begin(),
                     copy.end());
        std::string text = TextOf(lines);
        if (!texts_.insert(text).second) continue;
        const std::string place = std::to_string(change.line + 1) + "@" + std::to_string(call + 1);
        const int nth = places_[change.op + place]++;
        result_.push_back(
            {change.op, nth == 0 ? place : place + "." + std::to_string(nth), std::move(text)});
      }
    }
  }
}

std::vector<Seeded> Sower::Sow() {
  if (end_ <= first_) return {};
  RewriteLines();
  RenameHelpers();
  RewriteWaits();
  MoveStatements();
  SkipBarrier();
  Everywhere();
  AtEachCall();
  return std::move(result_);
}

}  // namespace

std::vector<Seeded> Seed(std::string_view source, std::string_view before) {
  return Sower(source, before).Sow();
}

}  // namespace allranks::mutants
