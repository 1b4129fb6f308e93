// An edit names a statement, and the calls through which it was inlined. Where exactly a text goes
// follows from who has to execute it:
//  - one thread: right before or behind the statement; behind the loop, if it is what a loop waits
//    for; at the call, if the function does nothing else (st_flag(), ld_flag());
//  - all threads of a warp or block: before or behind the outermost statement that only some of
//    them execute.
#include "remedies/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <vector>

#include "remedies/host_edit.h"
#include "remedies/source.h"

namespace allranks::remedies {
namespace {

using Json = nlohmann::json;
using Kind = Statement::Kind;

struct Frame {
  int statement = -1;
  std::size_t offset = 0;
};

std::string Simple(const std::string& function) {
  std::string name = function.substr(0, function.find('('));
  name = name.substr(0, name.find('<'));
  if (const std::size_t at = name.find_last_of(" :"); at != std::string::npos)
    name = name.substr(at + 1);
  return name;
}

class Editor {
 public:
  Editor(const Json& edit, const std::string& file, const std::string& text)
      : edit_(edit), file_(file), source_(text), text_(text) {}

  Result<std::string> Run() {
    const std::string action = edit_.value("action", ""), by = edit_.value("by", "");
    if (by == "host" && edit_["at"][0]["line"].is_null()) return Host();
    if (by == "host" && action != "move_after") return ApplyHostEdit(edit_, file_, text_);
    const std::vector<Frame> at = Frames("at");
    if (at.empty()) {
      const int function = source_.Named(Simple(edit_["at"].back().value("function", "")));
      const bool begin = !edit_["at"].empty() && edit_["at"].back()["line"].is_null();
      if (!begin || function < 0) return Fail("no statement at {}", edit_["at"].dump());
      text_.insert(source_.at(function).body, " " + edit_.value("text", ""));
      return text_;
    }
    if (action == "replace") return Replace(at);
    if (action == "move_after") return Move(at, Frames("to"));
    if (action == "hoist") return Hoist(at, Frames("to"));
    const bool after = action == "insert_after";
    if (by == "thread") return Thread(at, after);
    return Together(at, after, by == "warp");
  }

 private:
  // Innermost first: those in this file.
  std::vector<Frame> Frames(const char* key) const {
    std::vector<Frame> frames;
    std::string callee;  // of the call that stands there
    for (const Json& place : edit_[key]) {
      const std::string called = callee;
      callee = place["function"].is_null() ? "" : Simple(place.value("function", ""));
      if (place["file"].is_null() || place["line"].is_null()) continue;
      if (std::filesystem::path(place.value("file", "")).filename() !=
          std::filesystem::path(file_).filename())
        continue;
      const int column = place["column"].is_null() ? 0 : place["column"].get<int>();
      const std::size_t first = source_.Offset(place["line"].get<int>(), column);
      const std::size_t offset =
          OnLine(first, key == std::string("at") ? called : "", called.empty());
      const int statement = source_.Find(offset);
      if (statement >= 0 && source_.at(statement).kind != Kind::kFunction)
        frames.push_back({statement, offset});
    }
    return frames;
  }

  // Positions name the first statement of a line. The one meant has the call, or looks like the
  // instruction.
  std::size_t OnLine(std::size_t offset, const std::string& called, bool innermost) const {
    const std::size_t end = std::min(text_.find('\n', offset), text_.size());
    const std::string line = text_.substr(offset, end - offset);
    if (!called.empty()) {
      std::smatch match;
      if (std::regex_search(line, match, std::regex("\\b" + called + "\\s*[(<]")))
        return offset + static_cast<std::size_t>(match.position());
      return offset;
    }
    const std::string form = innermost && edit_["form"].is_string() ? edit_.value("form", "") : "";
    const std::string op = form.substr(0, form.find('.'));
    std::vector<std::string> patterns;
    if (op == "atom" || op == "red") {
      patterns = {R"(\batomic[A-Z]\w*\()", R"("(atom|red)\.)",
                  R"(\.(fetch_\w+|compare_exchange_\w+|exchange)\()"};
    } else if (op == "fence" || op == "membar") {
      patterns = {R"(\b__threadfence\w*\()", R"("fence\.)", R"(atomic_thread_fence\()"};
    } else if (op == "bar" || op == "barrier") {
      patterns = {R"(\b__syncthreads\w*\()", R"("bar(rier)?\.)", R"(\.sync\()"};
    } else if (op == "st") {
      patterns = {R"("st\.)", form.find("volatile") != std::string::npos ? R"(volatile[^;]*=)"
                                                                         : R"(\.store\()"};
    } else if (op == "ld") {
      patterns = {R"("ld\.)", R"(\.load\()",
                  form.find("volatile") != std::string::npos ? R"(volatile)" : R"(\.load\()"};
    }
    for (const std::string& pattern : patterns) {
      std::smatch match;
      if (std::regex_search(line, match, std::regex(pattern)))
        return offset + static_cast<std::size_t>(match.position());
    }
    return offset;
  }

  // A statement that may stand beside others.
  bool Free(int statement) const {
    const Kind above = source_.at(source_.at(statement).parent).kind;
    return above == Kind::kBlock || above == Kind::kFunction;
  }

  Result<std::string> Insert(int statement, bool after, const std::string& what) {
    const Statement& one = source_.at(statement);
    const std::string old(source_.Text(one));
    std::string made = after ? old + " " + what : what + " " + old;
    if (!Free(statement)) made = "{ " + made + " }";
    text_.replace(one.begin, one.end - one.begin, made);
    return text_;
  }

  Frame Inner(const std::vector<Frame>& frames) const {
    std::size_t i = 0;
    while (i + 1 < frames.size() && source_.Wrapper(source_.Function(frames[i].statement))) ++i;
    return frames[i];
  }

  Result<std::string> Thread(const std::vector<Frame>& frames, bool after) {
    const std::string what = edit_.value("text", "");
    const Frame frame = Inner(frames);
    int at = frame.statement;
    const auto kind = [&] { return source_.at(at).kind; };
    if (!after) {
      while (kind() == Kind::kBlock) at = source_.at(at).parent;
      return Insert(at, false, what);
    }
    // A load that a loop waits for: behind the loop.
    for (int up = at; up >= 0; up = source_.at(up).parent) {
      const Statement& one = source_.at(up);
      if (one.kind != Kind::kLoop && one.kind != Kind::kDo) continue;
      const std::string text(source_.Text(one));
      const std::string head = text_.substr(one.head_begin, one.head_end - one.head_begin);
      static const std::regex kEndless(R"(^\(\s*(true|1|;\s*;)\s*\)$)");
      const bool waits =
          source_.InHead(up, frame.offset) ||
          ((one.kind == Kind::kDo || std::regex_match(head, kEndless)) && text.size() < 400);
      if (waits && text.find("for (int") != 0) at = up;
      break;
    }
    if (kind() == Kind::kIf && source_.InHead(at, frame.offset)) {
      // On both ways out of its condition.
      const Statement& one = source_.at(at);
      std::string text(source_.Text(one));
      const std::size_t then = one.head_end - one.begin;
      int body = -1;
      for (std::size_t i = 0; i < source_.statements().size() && body < 0; ++i)
        if (source_.at(static_cast<int>(i)).parent == at) body = static_cast<int>(i);
      const std::string inside(source_.Text(source_.at(body)));
      text.replace(text.find(inside, then), inside.size(), "{ " + what + " " + inside + " }");
      text += " " + what;
      if (!Free(at)) text = "{ " + text + " }";
      text_.replace(one.begin, one.end - one.begin, text);
      return text_;
    }
    return Insert(at, true, what);
  }

  // The outermost statement around it that not all threads execute; itself, if all do.
  int Whole(const Frame& frame, bool warp, bool* divergent) const {
    int found = frame.statement;
    *divergent = false;
    for (int up = frame.statement; up >= 0; up = source_.at(up).parent) {
      if (source_.at(up).kind == Kind::kFunction) break;
      if (source_.Divergent(up, warp)) {
        found = up;
        *divergent = true;
      }
    }
    return found;
  }

  int Together(const std::vector<Frame>& frames, bool warp) const {
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      bool divergent = false;
      const int at = Whole(*frame, warp, &divergent);
      if (divergent) return at;
    }
    int at = Inner(frames).statement;
    while (source_.at(at).kind == Kind::kBlock) at = source_.at(at).parent;
    return at;
  }

  Result<std::string> Together(const std::vector<Frame>& frames, bool after, bool warp) {
    return Insert(Together(frames, warp), after, edit_.value("text", ""));
  }

  Result<std::string> Move(const std::vector<Frame>& from, const std::vector<Frame>& to) {
    if (to.empty()) return Fail("no statement to move it behind");
    const bool block = edit_.value("by", "") == "block";
    int a = block ? Together(from, false) : Inner(from).statement;
    int b = block ? Together(to, false) : Inner(to).statement;
    // Up to where both stand side by side.
    const auto above = [&](int one) {
      std::vector<int> all;
      for (int up = one; up >= 0; up = source_.at(up).parent) all.insert(all.begin(), up);
      return all;
    };
    const std::vector<int> p = above(a), q = above(b);
    std::size_t i = 0;
    while (i < p.size() && i < q.size() && p[i] == q[i]) ++i;
    if (i == 0 || i == p.size() || i == q.size()) return Fail("they do not stand side by side");
    a = p[i];
    b = q[i];
    const Statement &moved = source_.at(a), &behind = source_.at(b);
    if (moved.begin > behind.begin) return Fail("it stands behind it already");
    const std::string text(source_.Text(moved));
    text_.insert(behind.end, " " + edit_.value("text", "") + " " + text);
    text_.replace(moved.begin, moved.end - moved.begin, ";");
    return text_;
  }

  // The barrier, and the other one if it stands in the same statement that only some execute, are
  // taken out of it; one stands behind it.
  Result<std::string> Hoist(const std::vector<Frame>& frames, const std::vector<Frame>& others) {
    bool divergent = false, other_divergent = false;
    int inner = Inner(frames).statement, outer = Whole(Inner(frames), false, &divergent);
    int other = -1;
    if (!others.empty()) {
      other = Inner(others).statement;
      const int above = Whole(Inner(others), false, &other_divergent);
      if (!divergent && other_divergent) {
        std::swap(inner, other);
        outer = above;
        divergent = true;
      } else if (above != outer) {
        other = -1;
      }
    }
    if (!divergent || inner == outer) return Fail("all threads execute it");
    const Statement whole = source_.at(outer);
    std::string text(source_.Text(whole));
    std::vector<int> gone = {inner};
    if (other >= 0 && other != inner && other_divergent) gone.push_back(other);
    std::sort(gone.begin(), gone.end(),
              [&](int a, int b) { return source_.at(a).begin > source_.at(b).begin; });
    for (const int one : gone) {
      const Statement& at = source_.at(one);
      if (at.kind != Kind::kSimple) return Fail("it is no statement of its own");
      text.replace(at.begin - whole.begin, at.end - at.begin, ";");
    }
    text += " " + edit_.value("text", "");
    if (!Free(outer)) text = "{ " + text + " }";
    text_.replace(whole.begin, whole.end - whole.begin, text);
    return text_;
  }

  // The first argument of the warp-wide operation.
  Result<std::string> Mask(const std::vector<Frame>& frames, const std::string& to) {
    static const std::regex kCall(
        R"(\b__(?:shfl(?:_up|_down|_xor)?|ballot|any|all|match_any|match_all|reduce_\w+)_sync\s*\(|\b__syncwarp\s*\()");
    static const std::regex kAsm(R"((bar\.warp\.sync\s+)(0x[0-9a-fA-F]+|-1|\d+)(;))");
    for (const Frame& frame : frames) {
      const Statement& one = source_.at(frame.statement);
      std::string text(source_.Text(one));
      std::smatch match;
      if (std::regex_search(text, match, kCall)) {
        const auto begin = static_cast<std::size_t>(match.position() + match.length());
        std::size_t end = begin;
        for (int depth = 0; end < text.size(); ++end) {
          const char c = text[end];
          if (depth == 0 && (c == ',' || c == ')')) break;
          if (c == '(' || c == '[' || c == '{') ++depth;
          if (c == ')' || c == ']' || c == '}') --depth;
        }
        text.replace(begin, end - begin, to);
      } else if (std::regex_search(text, kAsm)) {
        text = std::regex_replace(text, kAsm, "$1" + to.substr(0, to.size() - 1) + "$3");
      } else {
        continue;
      }
      text_.replace(one.begin, one.end - one.begin, text);
      return text_;
    }
    return Fail("no warp-wide operation at {}", edit_["at"].dump());
  }

  Result<std::string> Replace(const std::vector<Frame>& frames) {
    const std::string from = edit_.value("from", ""), to = edit_.value("text", "");
    std::vector<std::pair<std::regex, std::string>> rules;
    if (from == "weak") return Strengthen(frames, to);
    if (from == "mask") return Mask(frames, to);
    if (from == "relaxed") {
      std::string upper = to;
      std::transform(upper.begin(), upper.end(), upper.begin(),
                     [](unsigned char c) { return std::toupper(c); });
      rules = {{std::regex(R"(\.relaxed\b)"), "." + to},
               {std::regex(R"(memory_order_relaxed)"), "memory_order_" + to},
               {std::regex(R"(__ATOMIC_RELAXED)"), "__ATOMIC_" + upper}};
    } else if (from == ".nc") {
      rules = {{std::regex(R"(\.nc\b)"), ""}, {std::regex(R"(__ldg\()"), "*("}};
    } else {
      const std::string suffix = to == "sys" ? "_system" : "";
      const std::string fence = to == "sys" ? "__threadfence_system()" : "__threadfence()";
      const std::string scope = to == "sys" ? "system" : "device";
      rules = {{std::regex("\\." + from + "\\b"), "." + to},
               {std::regex(R"(\b(atomic[A-Z][A-Za-z]*?)(_block)?\()"), "$1" + suffix + "("},
               {std::regex(R"(\b__threadfence(_block)?\(\))"), fence},
               {std::regex(R"(thread_scope_(device|block))"), "thread_scope_" + scope},
               {std::regex(R"(\b(atom|red)((?:\.(?:relaxed|acquire|release|acq_rel))?)\.global)"),
                "$1$2." + to + ".global"}};
    }
    for (const Frame& frame : frames) {
      const Statement& one = source_.at(frame.statement);
      const std::string old(source_.Text(one));
      for (const auto& [pattern, with] : rules) {
        const std::string made = std::regex_replace(old, pattern, with);
        if (made == old) continue;
        text_.replace(one.begin, one.end - one.begin, made);
        return text_;
      }
    }
    if (from == "relaxed") return Fail("nothing is relaxed at {}", edit_["at"].dump());
    // The type or parameter says it.
    static const std::regex kScope(R"(thread_scope_(device|block))");
    static const std::regex kRestrict(R"(__restrict__)");
    const std::string made =
        from == ".nc"
            ? std::regex_replace(text_, kRestrict, "")
            : std::regex_replace(text_, kScope,
                                 to == "sys" ? "thread_scope_system" : "thread_scope_device");
    if (made == text_) return Fail("nothing to replace at {}", edit_["at"].dump());
    text_ = made;
    return text_;
  }

  // A weak access becomes a strong one: in an instruction, or by volatile.
  Result<std::string> Strengthen(const std::vector<Frame>& frames, const std::string& to) {
    static const std::regex kInstruction(R"("(st|ld)\.(?:weak\.)?(global|shared|v2|v4|[uabsf]\d))");
    static const std::regex kStore(R"(^((?:\w+\s+)?)([^=;]*?[\w\])])\s*=([^=][^;]*;)$)");
    for (const Frame& frame : frames) {
      const Statement& one = source_.at(frame.statement);
      const std::string old(source_.Text(one));
      std::string made = std::regex_replace(old, kInstruction, "\"$1." + to + ".$2");
      const bool instruction = made != old;
      if (made == old && one.kind == Kind::kSimple && edit_.value("form", "").starts_with("st"))
        made = std::regex_replace(old, kStore, "*(volatile std::decay_t<decltype($2)>*)&($2) =$3");
      static const std::regex kLoad(R"(([=(,]|return)\s*\*\s*(\w+))");
      if (made == old && one.kind == Kind::kSimple && edit_.value("form", "").starts_with("ld"))
        made =
            std::regex_replace(old, kLoad, "$1 *(const volatile std::decay_t<decltype(*$2)>*)($2)");
      if (made == old) continue;
      text_.replace(one.begin, one.end - one.begin, made);
      const bool release = to.starts_with("release"), acquire = to.starts_with("acquire");
      if (instruction || (!release && !acquire)) return text_;
      // volatile has no order: the fence that makes up for it.
      Json fence = edit_;
      fence["action"] = release ? "insert_before" : "insert_after";
      fence["from"] = nullptr;
      fence["text"] = to.ends_with(".sys") ? "__threadfence_system();" : "__threadfence();";
      return Editor(fence, file_, text_).Run();
    }
    return Fail("nothing to make strong at {}", edit_["at"].dump());
  }

  struct Call {
    int statement = -1;
    std::string stream = "0";
  };
  // Statements that give this to a stream.
  std::vector<Call> Calls(const std::string& function) const {
    std::vector<Call> calls;
    const bool copy = function == "copy" || function.starts_with("cudaMemcpy");
    const bool memset = function == "memset" || function.starts_with("cudaMemset");
    const std::regex pattern(copy     ? R"(\bcudaMemcpy\w*Async\s*\()"
                             : memset ? R"(\bcudaMemset\w*Async\s*\()"
                                      : "\\b" + Simple(function) + R"((<[^<>;]*>)?\s*<<<)");
    for (std::sregex_iterator it(text_.begin(), text_.end(), pattern), end; it != end; ++it) {
      const auto begin = static_cast<std::size_t>(it->position()) + it->str().size();
      std::vector<std::string> words(1);
      int depth = 0;
      for (std::size_t i = begin; i < text_.size(); ++i) {
        const char c = text_[i];
        if (depth == 0 && (text_.compare(i, 3, ">>>") == 0 || c == ')')) break;
        if (c == '(' || c == '[' || c == '{') ++depth;
        if (c == ')' || c == ']' || c == '}') --depth;
        if (c == ',' && depth == 0) {
          words.emplace_back();
        } else {
          words.back() += c;
        }
      }
      Call call;
      call.statement = source_.Find(static_cast<std::size_t>(it->position()));
      if (copy || memset ? words.size() > 3 : words.size() > 3) call.stream = words.back();
      if (call.statement >= 0) calls.push_back(call);
    }
    return calls;
  }

  Result<std::string> Host() {
    const std::vector<Call> later = Calls(edit_["at"][0].value("function", ""));
    const std::vector<Call> earlier = Calls(edit_["to"][0].value("function", ""));
    if (later.empty() || earlier.empty())
      return Fail("no call of {} and {}", edit_["at"][0].value("function", ""),
                  edit_["to"][0].value("function", ""));
    // The first that has one of the other kind before it, and the last of those.
    Call two = later.front(), one = earlier.front();
    for (const Call& call : later) {
      if (source_.at(call.statement).begin <= source_.at(earlier.front().statement).begin) continue;
      two = call;
      break;
    }
    for (const Call& call : earlier)
      if (source_.at(call.statement).begin < source_.at(two.statement).begin) one = call;
    const bool all = edit_.value("text", "") == "cudaDeviceSynchronize";
    if (all) {
      // Between rounds: in front of the loop that gives every device its launch.
      int loop = -1;
      for (int up = two.statement; up >= 0; up = source_.at(up).parent) {
        if (source_.at(up).kind != Kind::kLoop) continue;
        loop = up;
        break;
      }
      if (loop >= 0) two.statement = loop;
    }
    const std::string wait =
        all || one.stream == "0"
            ? "{ int d_, n_; cudaGetDevice(&d_); cudaGetDeviceCount(&n_); for (int i_ = 0; i_ < "
              "n_; "
              "++i_) { cudaSetDevice(i_); cudaDeviceSynchronize(); } cudaSetDevice(d_); }"
        : text_.find("cudaStreamBeginCapture") != std::string::npos
            ? fmt::format(
                  "{{ cudaEvent_t e_; cudaEventCreateWithFlags(&e_, cudaEventDisableTiming); "
                  "cudaEventRecord(e_, {}); cudaStreamWaitEvent({}, e_, 0); }}",
                  one.stream, two.stream)
            : fmt::format("cudaStreamSynchronize({});", one.stream);
    return Insert(two.statement, false, wait);
  }

  const Json& edit_;
  std::string file_;
  Source source_;
  std::string text_;
};

}  // namespace

Result<std::string> Apply(const Json& edits, const std::string& file, std::string text) {
  // From the last place to the first, so that positions stay what they are.
  std::vector<Json> all(edits.begin(), edits.end());
  const auto line = [](const Json& edit) {
    return edit["at"].empty() || edit["at"].back()["line"].is_null()
               ? 0
               : edit["at"].back()["line"].get<int>();
  };
  // Barriers before fences at one place: inserted last, they come first.
  const auto wide = [](const Json& edit) { return edit.value("by", "") != "thread"; };
  std::stable_sort(all.begin(), all.end(), [&](const Json& a, const Json& b) {
    return line(a) != line(b) ? line(a) > line(b) : !wide(a) && wide(b);
  });
  for (const Json& edit : all) {
    Result<std::string> made = Editor(edit, file, text).Run();
    if (!made) return made;
    text = *made;
  }
  return text;
}

}  // namespace allranks::remedies
