// An edit names a statement, and the calls through which it was inlined. Where exactly a text goes
// follows from who has to execute it:
//  - one thread: right before or behind the statement; behind the loop, if it is what a loop waits
//    for; at the call, if the function does nothing else (st_flag(), ld_flag());
//  - all threads of a warp or block: before or behind the outermost statement that only some of
//    them execute.
#include "remedies/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <vector>

#include "remedies/host_edit.h"
#include "remedies/instruction.h"
#include "remedies/source.h"

namespace allranks::remedies {
namespace {

using Json = nlohmann::json;
using Kind = Statement::Kind;

class Editor {
 public:
  Editor(const Json& edit, const std::string& file, const std::string& text)
      : edit_(edit), file_(file), source_(text), text_(text) {}

  Result<std::string> Run() {
    const std::string action = edit_.value("action", ""), by = edit_.value("by", "");
    if (by == "host" && edit_["at"][0]["line"].is_null()) return Host();
    if (by == "host") return ApplyHostEdit(edit_, file_, text_);
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
    return Together(at, after);
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
      if (statement >= 0 && source_.at(statement).kind != Kind::kFunction && Editable(offset))
        frames.push_back({statement, offset});
    }
    return frames;
  }

  // A candidate changes nothing outside of its region.
  bool Editable(std::size_t offset) const {
    const std::size_t begin = text_.find("// >>> edit"), end = text_.find("// <<< edit");
    return begin == std::string::npos || (offset > begin && offset < end);
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

  // The pointer that an instruction or the function around it is given: `sm(&bar)` is one of shared
  // memory, of which the pointer is wanted.
  static std::string AddressOf(std::string_view statement) {
    static const std::regex kOperand(R"re(:\s*:\s*"[rl]"\((?:\w+\()?([^()]*)\))re");
    static const std::regex kCall(R"(\b\w+\(([^(),]*(?:\([^()]*\))?[^(),]*)[,)])");
    const std::string text(statement);
    const bool in_asm = text.find("asm") != std::string::npos;
    std::smatch match;
    return std::regex_search(text, match, in_asm ? kOperand : kCall) ? match[1].str() : "";
  }

  // The loop that waits for what the statement loads; the statement, if there is none.
  int WaitOf(const Frame& frame) const {
    for (int up = frame.statement; up >= 0; up = source_.at(up).parent) {
      const Statement& one = source_.at(up);
      if (one.kind != Kind::kLoop && one.kind != Kind::kDo) continue;
      const std::string text(source_.Text(one));
      const std::string head = text_.substr(one.head_begin, one.head_end - one.head_begin);
      static const std::regex kEndless(R"(^\(\s*(true|1|;\s*;)\s*\)$)");
      const bool waits =
          source_.InHead(up, frame.offset) ||
          ((one.kind == Kind::kDo || std::regex_match(head, kEndless)) && text.size() < 400);
      // What is behind a loop that is left by a return is not executed.
      const bool returns = !source_.InHead(up, frame.offset) &&
                           text.find("return") != std::string::npos &&
                           text.find("break") == std::string::npos;
      return waits && !returns && text.find("for (int") != 0 ? up : frame.statement;
    }
    return frame.statement;
  }

  Result<std::string> Thread(const std::vector<Frame>& frames, bool after) {
    std::string what = edit_.value("text", "");
    const Frame frame = Inner(frames);
    int at = frame.statement;
    constexpr std::string_view kAddress = "$at.address";
    if (const std::size_t place = what.find(kAddress); place != std::string::npos) {
      const std::string address = AddressOf(source_.Text(source_.at(at)));
      if (address.empty()) return Fail("no address at {}", edit_["at"].dump());
      what.replace(place, kAddress.size(), address);
    }
    const auto kind = [&] { return source_.at(at).kind; };
    if (!after) {
      while (kind() == Kind::kBlock) at = source_.at(at).parent;
      return Insert(at, false, what);
    }
    // A store is followed at once; behind a load that a loop waits for comes the loop's end.
    const std::string form = edit_["form"].is_string() ? edit_.value("form", "") : "";
    if (form.starts_with("st.") || form.starts_with("red.")) return Insert(at, true, what);
    at = WaitOf(frame);
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
  int Whole(const Frame& frame, Group group, bool* divergent) const {
    int found = frame.statement;
    *divergent = false;
    for (int up = frame.statement; up >= 0; up = source_.at(up).parent) {
      if (source_.at(up).kind == Kind::kFunction) break;
      if (source_.Divergent(up, group)) {
        found = up;
        *divergent = true;
      }
    }
    return found;
  }

  int Together(const std::vector<Frame>& frames, Group group, bool after = false) const {
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      bool divergent = false;
      const int at = Whole(*frame, group, &divergent);
      if (divergent) return at;
    }
    int at = after ? WaitOf(Inner(frames)) : Inner(frames).statement;
    while (source_.at(at).kind == Kind::kBlock) at = source_.at(at).parent;
    return at;
  }

  Group GroupOf() const {
    const std::string by = edit_.value("by", "");
    return by == "warp" ? Group::kWarp : by == "grid" ? Group::kGrid : Group::kBlock;
  }

  Result<std::string> Together(const std::vector<Frame>& frames, bool after) {
    return Insert(Together(frames, GroupOf(), after), after, edit_.value("text", ""));
  }

  // From the function down to the statement.
  std::vector<int> Above(int statement) const {
    std::vector<int> all;
    for (int up = statement; up >= 0; up = source_.at(up).parent) all.insert(all.begin(), up);
    return all;
  }

  // Where the two frames stand side by side in one function: the statements around them that do.
  struct Pair {
    int moved = -1, behind = -1;
  };
  Pair SideBySide(int from, int to) const {
    const std::vector<int> p = Above(from), q = Above(to);
    std::size_t i = 0;
    while (i < p.size() && i < q.size() && p[i] == q[i]) ++i;
    if (i == 0 || i == p.size() || i == q.size()) return {};
    return {p[i], q[i]};
  }

  // What moves if `outer` has to: of a condition with more statements in it only the one that is
  // meant, under the same condition.
  struct Piece {
    std::size_t begin = 0, end = 0;
    std::string text;
    bool whole = true;
  };
  Piece PieceOf(int outer, const std::vector<Frame>& frames) const {
    const Statement& whole = source_.at(outer);
    Piece all{whole.begin, whole.end, std::string(source_.Text(whole))};
    const std::string body = text_.substr(whole.head_end, whole.end - whole.head_end);
    if (whole.kind != Kind::kIf || body.find("else") != std::string::npos) return all;
    const auto within = [&](const Frame& frame) {
      const int block = source_.at(frame.statement).parent;
      return block >= 0 && source_.at(block).kind == Kind::kBlock &&
             source_.at(block).parent == outer;
    };
    const auto frame = std::find_if(frames.begin(), frames.end(), within);
    if (frame == frames.end() || Needs(frame->statement)) return all;
    const Statement& one = source_.at(frame->statement);
    return {one.begin, one.end,
            fmt::format("if {} {{ {} }}",
                        text_.substr(whole.head_begin, whole.head_end - whole.head_begin),
                        source_.Text(one)),
            false};
  }

  // Whether a statement uses what one before it in its block declares.
  bool Needs(int statement) const {
    static const std::regex kDeclared(R"([\w:>*&]\s+[*&]*(\w+)\s*=[^=])");
    const std::string text(source_.Text(source_.at(statement)));
    for (const Statement& one : source_.statements()) {
      if (one.parent != source_.at(statement).parent || one.kind != Kind::kSimple ||
          one.begin >= source_.at(statement).begin)
        continue;
      const std::string other(source_.Text(one));
      for (std::sregex_iterator it(other.begin(), other.end(), kDeclared), end; it != end; ++it)
        if (std::regex_search(text, std::regex("\\b" + (*it)[1].str() + "\\b"))) return true;
    }
    return false;
  }

  Result<std::string> Move(const std::vector<Frame>& from, const std::vector<Frame>& to) {
    if (to.empty()) return Fail("no statement to move it behind");
    const bool block = edit_.value("by", "") == "block";
    const int a = block ? Together(from, Group::kBlock) : Inner(from).statement;
    const int b = block ? Together(to, Group::kBlock) : Inner(to).statement;
    Pair found = SideBySide(a, b);
    // In one statement that only some threads execute, while all have to meet between them.
    if (found.moved < 0 && a == b && !PieceOf(a, from).whole) found = {a, b};
    // A helper does one of them, or both helpers are called from one function.
    for (std::size_t sum = 0; found.moved < 0 && sum < from.size() + to.size(); ++sum)
      for (std::size_t i = 0; found.moved < 0 && i < from.size() && i <= sum; ++i)
        if (sum - i < to.size()) found = SideBySide(from[i].statement, to[sum - i].statement);
    if (found.moved < 0) return Fail("they do not stand side by side");
    const Piece piece = PieceOf(found.moved, from);
    const Statement& behind = source_.at(found.behind);
    if (piece.begin > behind.end || (piece.whole && piece.begin > behind.begin))
      return Fail("it stands behind it already");
    text_.insert(behind.end, " " + edit_.value("text", "") + " " + piece.text);
    text_.replace(piece.begin, piece.end - piece.begin, ";");
    return text_;
  }

  // The barrier, and the other one if it stands in the same statement that only some execute, are
  // taken out of it; one stands behind it.
  Result<std::string> Hoist(const std::vector<Frame>& frames, const std::vector<Frame>& others) {
    bool divergent = false, other_divergent = false;
    int inner = Inner(frames).statement, outer = Whole(Inner(frames), Group::kBlock, &divergent);
    int other = -1;
    if (!others.empty()) {
      other = Inner(others).statement;
      const int above = Whole(Inner(others), Group::kBlock, &other_divergent);
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

  // What the change itself does not give, fences do: in front of it for a release, behind it for an
  // acquire.
  Result<std::string> Replace(const std::vector<Frame>& frames) {
    const Result<Replaced> made = ReplacePart(edit_, source_, frames);
    if (!made) return Fail(made.error());
    text_ = made->text;
    const auto fence = [&](const char* action) -> Result<std::string> {
      Json edit = edit_;
      edit["action"] = action;
      edit["from"] = nullptr;
      edit["text"] = made->order.ends_with(".sys")   ? "__threadfence_system();"
                     : made->order.ends_with(".cta") ? "__threadfence_block();"
                                                     : "__threadfence();";
      return Editor(edit, file_, text_).Run();
    };
    const bool both = made->order.starts_with("acq_rel");
    Result<std::string> text = text_;
    if (both || made->order.starts_with("acquire")) text = fence("insert_after");
    if (!text) return text;
    text_ = *text;
    if (both || made->order.starts_with("release")) text = fence("insert_before");
    return text;
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
      if (words.size() > 3) call.stream = words.back();
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
  // Before a place barriers come before fences, behind it after them: what is inserted last is next
  // to a place that it follows, and farther from one that it precedes.
  const auto wide = [](const Json& edit) {
    return (edit.value("by", "") != "thread") != (edit.value("action", "") == "insert_after");
  };
  std::stable_sort(all.begin(), all.end(), [&](const Json& a, const Json& b) {
    return line(a) != line(b) ? line(a) > line(b) : !wide(a) && wide(b);
  });
  for (const Json& edit : all) {
    Result<std::string> made = Editor(edit, file, text).Run();
    if (!made) return made;
    text = *made;
  }
  // The driver's calls have a header of their own.
  if (text.find("cuStreamWriteValue") != std::string::npos &&
      text.find("#include <cuda.h>") == std::string::npos)
    text.insert(0, "#include <cuda.h>\n");
  return text;
}

}  // namespace allranks::remedies
