#include "remedies/host_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <string_view>
#include <vector>

#include "remedies/source.h"

namespace allranks::remedies {
namespace {

using Json = nlohmann::json;
using Kind = Statement::Kind;

// Where a stream can be read neither here nor there: all devices.
constexpr const char* kAllDevices =
    "{ int home_, count_; cudaGetDevice(&home_); cudaGetDeviceCount(&count_); for (int i_ = 0; i_ "
    "< count_; ++i_) { cudaSetDevice(i_); cudaDeviceSynchronize(); } cudaSetDevice(home_); }";

constexpr const char* kNone = "";
// A node that the source does not keep.
constexpr const char* kResult = "result_";

std::string Trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin);
}

struct Call {
  std::string name;  // empty: a kernel's launch
  std::size_t begin = 0, end = 0;
  std::vector<std::string> arguments;
};

// A frame of a stack.
struct Point {
  int statement = -1;
  std::optional<Call> call;
};

class HostEditor {
 public:
  HostEditor(const Json& edit, const std::string& file, const std::string& text)
      : edit_(edit), file_(std::filesystem::path(file).filename()), source_(text), text_(text) {}

  Result<std::string> Run() {
    const std::string form = edit_["form"].is_string() ? edit_.value("form", "") : "";
    at_ = Points("at", form);
    to_ = Points("to", "");
    if (at_.empty()) return Fail("no statement at {}", edit_["at"].dump());
    if (edit_.value("text", "") == "cudaDeviceSynchronize") {
      // Between rounds: in front of the loop that gives every device its launch.
      int statement = at_[0].statement;
      for (int up = statement; up >= 0; up = source_.at(up).parent) {
        if (source_.at(up).kind != Kind::kLoop) continue;
        statement = up;
        break;
      }
      return Insert(statement, false, kAllDevices);
    }
    // The innermost frames of both that stand in one function, or at least in one around a lambda.
    const auto apart = [&] { return at_[i_].statement != to_[j_].statement; };
    const bool found = edit_["to"].empty() ||
                       Meet([&] { return apart() && Callable(at_[i_]) == Callable(to_[j_]); }) ||
                       Meet([&] {
                         return apart() && source_.Function(at_[i_].statement) ==
                                               source_.Function(to_[j_].statement);
                       }) ||
                       Meet([&] { return Callable(at_[i_]) == Callable(to_[j_]); });
    if (!found) return Apart();
    Result<std::string> text = Filled(edit_.value("text", ""));
    if (!text) return text;
    const std::string action = edit_.value("action", "");
    if (action == "replace") return ReplaceCall(*text);
    if (action == "move_after") return Move(*text);
    if (action == "hoist") return Hoist();
    if (action == "insert_after") return Insert(at_[i_].statement, true, *text);
    return Insert(OutOfLoops(at_[i_].statement), false, *text);
  }

 private:
  template <class F>
  bool Meet(F f) {
    for (std::size_t sum = 0; sum < at_.size() + to_.size(); ++sum) {
      for (i_ = 0; i_ < at_.size() && i_ <= sum; ++i_) {
        j_ = sum - i_;
        if (j_ < to_.size() && f()) return true;
      }
    }
    i_ = j_ = 0;
    return false;
  }

  // The host accesses in another function than that which has the stream: all devices are waited
  // for there. A host function of a stream must not wait.
  Result<std::string> Apart() {
    const std::string text = edit_.value("text", "");
    if (!text.starts_with("cudaStreamSynchronize($to.stream)"))
      return Fail("the two calls stand in no common function");
    const int function = source_.Function(at_[0].statement);
    if (function >= 0 && RunsInStream(source_.at(function).name))
      return InStream(source_.at(function).name);
    return Insert(AroundPlainLoops(at_[0].statement), false, kAllDevices);
  }

  // The function runs in a stream and must not call CUDA: its stream waits.
  Result<std::string> InStream(const std::string& name) {
    const std::regex launch(R"(\bcudaLaunchHostFunc\s*\()"
                            R"([^,;]*,\s*&?)" +
                            name + R"(\b)");
    std::smatch match;
    if (!std::regex_search(text_, match, launch))
      return Fail("{} runs in a stream and must not call CUDA", name);
    Point point;
    const auto begin = static_cast<std::size_t>(match.position());
    point.call = CallAt(begin, "cudaLaunchHostFunc", false);
    point.statement = source_.Find(begin);
    if (!point.call || point.statement < 0) return Fail("no statement launches {}", name);
    at_ = {point};
    if (!Meet([&] { return Callable(at_[i_]) == Callable(to_[j_]); }))
      return Fail("the two calls stand in no common function");
    const Result<std::string> text = Filled(
        "{ cudaEvent_t order_; int home_, device_; cudaGetDevice(&home_); "
        "cudaStreamGetDevice($to.stream, &device_); cudaSetDevice(device_); "
        "cudaEventCreateWithFlags(&order_, cudaEventDisableTiming); "
        "cudaEventRecord(order_, $to.stream); cudaSetDevice(home_); "
        "cudaStreamWaitEvent($at.stream, order_, 0); cudaEventDestroy(order_); }");
    if (!text) return text;
    return Insert(at_[0].statement, false, *text);
  }

  // The statement, or the one whose body it is, that stands in a list.
  int Listed(int statement) const {
    while (source_.at(statement).parent >= 0) {
      const Kind above = source_.at(source_.at(statement).parent).kind;
      if (above == Kind::kBlock || above == Kind::kFunction) break;
      statement = source_.at(statement).parent;
    }
    return statement;
  }

  // Whether the host waits there for what it has given to this stream.
  bool WaitsFor(int statement, const std::string& stream) const {
    static const std::regex kAll(R"(\bcu(daDevice|Ctx)Synchronize\b)");
    static const std::regex kNamed(R"(\b(?!\w*[aA]sync|cu)\w*[sS]ync\w*\s*\()");  // a helper
    const std::string text(source_.Text(source_.at(statement)));
    return std::regex_search(text, kAll) || std::regex_search(text, kNamed) ||
           text.find("StreamSynchronize(" + stream + ")") != std::string::npos;
  }

  // The first statement behind `from`, or behind one around it, at which the host waits, in the
  // innermost loop that has the moved call, too; -1: none.
  int WaitBehind(int from, const std::string& stream) const {
    for (int up = from; up >= 0 && source_.at(up).kind != Kind::kFunction;
         up = source_.at(up).parent) {
      const Kind kind = source_.at(up).kind;
      if (kind == Kind::kLoop && Encloses(up, at_[i_].statement)) break;
      const int list = source_.at(up).parent;
      if (list < 0 || !Encloses(list, at_[i_].statement)) continue;
      int found = -1;
      for (std::size_t i = 0; i < source_.statements().size(); ++i) {
        const int other = static_cast<int>(i);
        const Statement& one = source_.at(other);
        if (one.parent != list || one.begin < source_.at(up).end ||
            Encloses(other, at_[i_].statement) || !WaitsFor(other, stream))
          continue;
        if (found < 0 || one.begin < source_.at(found).begin) found = other;
      }
      if (found >= 0) return found;
    }
    return -1;
  }

  bool InElse(int condition, int statement) const {
    const Statement* then = nullptr;
    for (const Statement& one : source_.statements())
      if (one.parent == condition && (then == nullptr || one.begin < then->begin)) then = &one;
    return then != nullptr && source_.at(statement).begin >= then->end;
  }

  // Under the conditions and in the loops that it leaves.
  std::string Wrapped(int statement, int beside) const {
    std::string text(source_.Text(source_.at(statement)));
    for (int up = source_.at(statement).parent; up >= 0 && !Encloses(up, beside);
         up = source_.at(up).parent) {
      const Statement& one = source_.at(up);
      const std::string head = text_.substr(one.head_begin, one.head_end - one.head_begin);
      if (one.kind == Kind::kIf && InElse(up, statement)) {
        text = "if (!" + head + ") " + text;
      } else if (one.kind == Kind::kIf || one.kind == Kind::kLoop) {
        text = text_.substr(one.begin, one.head_end - one.begin) + " " + text;
      }
    }
    return text;
  }

  // Behind the first place after the other call where the host waits for it.
  Result<std::string> Move(const std::string& wait) {
    const Statement& moved = source_.at(at_[i_].statement);
    if (moved.kind != Kind::kSimple) return Fail("it is no statement of its own");
    int behind = wait.starts_with("cudaStreamSynchronize") || wait == kAllDevices
                     ? WaitBehind(to_[j_].statement, Value(to_, j_, "stream"))
                     : -1;
    const bool waits = behind >= 0;
    if (!waits) behind = Listed(to_[j_].statement);
    const std::size_t end = source_.at(behind).end;
    const std::string made = " " + (waits ? "" : wait + " ") + Wrapped(at_[i_].statement, behind);
    if (end <= moved.begin && waits) return Fail("it stands behind it already");
    if (end > moved.begin) {
      text_.insert(end, made);
      text_.replace(moved.begin, moved.end - moved.begin, ";");
    } else {
      text_.replace(moved.begin, moved.end - moved.begin, ";");
      text_.insert(end, made);
    }
    return text_;
  }

  // Out of the loop that launches, into one of its own in front of it.
  Result<std::string> Hoist() {
    const int statement = at_[i_].statement;
    int loop = source_.at(statement).parent;
    while (loop >= 0 &&
           !(source_.at(loop).kind == Kind::kLoop && Encloses(loop, to_[j_].statement)))
      loop = source_.at(loop).parent;
    if (loop < 0) return Fail("no loop has both");
    const Statement& whole = source_.at(loop);
    const Statement& moved = source_.at(statement);
    std::string body;
    for (const Statement& one : source_.statements()) {  // the device it is for
      if (one.kind == Kind::kSimple && one.begin > whole.head_end && one.end <= moved.begin &&
          source_.Text(one).find("cudaSetDevice") != std::string_view::npos)
        body += std::string(source_.Text(one)) + " ";
    }
    body += Wrapped(statement, to_[j_].statement);
    const std::string made =
        fmt::format("{{ {} {} {{ {} }} {} }} ", kAllDevices,
                    text_.substr(whole.begin, whole.head_end - whole.begin), body, kAllDevices);
    const std::size_t at = whole.begin;
    text_.replace(moved.begin, moved.end - moved.begin, ";");
    text_.insert(at, made);
    const int parent = whole.parent;
    const Kind above = parent >= 0 ? source_.at(parent).kind : Kind::kFunction;
    if (above == Kind::kBlock || above == Kind::kFunction) return text_;
    text_.insert(whole.end - (moved.end - moved.begin) + 1 + made.size(), " }");
    text_.insert(at, "{ ");
    return text_;
  }

  // Loops that only access, and call nothing.
  int AroundPlainLoops(int statement) const {
    static const std::regex kCall(R"(\b(?!if\b|for\b|while\b|sizeof\b)[A-Za-z_]\w*\s*\()");
    int found = statement;
    for (int up = statement; up >= 0; up = source_.at(up).parent) {
      const Statement& one = source_.at(up);
      if (one.kind != Kind::kLoop) continue;
      const std::string body = text_.substr(one.head_end, one.end - one.head_end);
      if (std::regex_search(body, kCall)) break;
      found = up;
    }
    return found;
  }

  bool RunsInStream(const std::string& name) const {
    const std::regex given(R"((cudaLaunchHostFunc|cuLaunchHostFunc|cudaStreamAddCallback)\s*\()"
                           R"([^;]*\b)" +
                           name + R"(\b|\bfn\s*=\s*&?)" + name + R"(\b)");
    return std::regex_search(text_, given);
  }

  // The lambda or function that it stands in.
  int Callable(const Point& point) const {
    int up = point.statement;
    while (up >= 0 && source_.at(up).kind != Kind::kFunction &&
           (source_.at(up).kind != Kind::kBlock || ParametersOf(up).empty()))
      up = source_.at(up).parent;
    return up;
  }

  std::vector<Point> Points(const char* key, std::string called) const {
    std::vector<Point> points;
    for (const Json& place : edit_[key]) {
      const std::string name = std::exchange(
          called, place["function"].is_string() ? Simple(place.value("function", "")) : "");
      if (place["file"].is_null() || place["line"].is_null() ||
          std::filesystem::path(place.value("file", "")).filename() != file_)
        continue;
      Point point;
      const std::size_t line = source_.Offset(place["line"].get<int>(), 0);
      point.call = CallAt(line, Simple(name), !points.empty());
      point.statement = source_.Find(point.call ? point.call->begin : line);
      while (point.statement >= 0 && source_.at(point.statement).kind == Kind::kBlock)
        point.statement = source_.at(point.statement).parent;
      if (point.statement >= 0 && source_.at(point.statement).kind != Kind::kFunction)
        points.push_back(std::move(point));
    }
    return points;
  }

  std::vector<std::string> Arguments(std::size_t begin, std::size_t* end) const {
    std::vector<std::string> words(1);
    int depth = 0;
    std::size_t i = begin;
    for (; i < text_.size(); ++i) {
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
    *end = text_[i] == ')' ? i + 1 : i + 3;
    for (std::string& word : words) word = Trimmed(word);
    return words;
  }

  // The call of that name on a line; without a name the first of CUDA's that has a
  // stream or makes a node, or a launch.
  std::optional<Call> CallAt(std::size_t line, const std::string& name, bool outer) const {
    const std::size_t end = std::min(text_.find('\n', line), text_.size());
    const std::string rest = text_.substr(line, end - line);
    static const std::regex kAny(
        R"(\b(cuda\w+(?:Async|Peer|Record|Launch|Memcpy\w*|Memset\w*|HostFunc|Kernel\w*|Node\w*|Free\w*)|cuStream\w+|cuda(?:Memcpy|Memset|Free|EventRecord|GraphLaunch)\w*|cuMem\w+)\s*\(|(<<<))");
    static const std::regex kSpecial(R"([^\w])");  // operator[]
    const std::regex named("\\b(" + std::regex_replace(name, kSpecial, R"(\$&)") +
                           R"()\s*(?:<[^<>;]*>)?\s*(?:\(|(<<<)))");
    static const std::regex kOuter(R"(\b([A-Za-z_]\w*)\s*(?:\(|(<<<)))");  // a lambda's name
    std::smatch match;
    if (name.empty() || !std::regex_search(rest, match, named)) {
      if (!std::regex_search(rest, match, outer ? kOuter : kAny)) return std::nullopt;
    }
    Call call;
    const bool launch = match[2].matched;
    if (!launch) call.name = match[1];
    call.begin = line + static_cast<std::size_t>(match.position());
    call.arguments = Arguments(call.begin + match.str().size(), &call.end);
    return call;
  }

  static std::string StreamOf(const Call& call) {
    const std::vector<std::string>& arguments = call.arguments;
    if (call.name.empty()) return arguments.size() > 3 ? arguments[3] : "0";
    if (call.name.starts_with("cuStream") || call.name == "cudaLaunchHostFunc") return arguments[0];
    if (call.name.starts_with("cudaLaunchKernelEx"))
      return arguments[0].starts_with("&") ? arguments[0].substr(1) + ".stream"
                                           : "(" + arguments[0] + ")->stream";
    static const std::map<std::string, std::size_t> kCounts = {
        {"cudaMemcpyAsync", 5},          {"cudaMemsetAsync", 4},   {"cudaMemcpyPeerAsync", 6},
        {"cudaMemcpy2DAsync", 8},        {"cudaMemset2DAsync", 6}, {"cudaMemcpy3DAsync", 2},
        {"cudaMallocAsync", 3},          {"cudaFreeAsync", 2},     {"cudaGraphLaunch", 2},
        {"cudaEventRecord", 2},          {"cudaLaunchKernel", 6},  {"cudaMemcpyToSymbolAsync", 6},
        {"cudaMemcpyFromSymbolAsync", 6}};
    const auto count = kCounts.find(call.name);
    return count != kCounts.end() && arguments.size() == count->second ? arguments.back() : "0";
  }

  // Names of the parameters of a function, or of the lambda whose body a block is.
  std::vector<std::string> ParametersOf(int statement) const {
    const Statement& one = source_.at(statement);
    const std::size_t brace = one.kind == Kind::kFunction ? one.body - 1 : one.begin;
    const std::size_t close = text_.find_last_not_of(" \t\n", brace - 1);
    if (close == std::string::npos) return {};
    if (text_[close] == ']') return {""};  // a lambda without parameters
    if (text_[close] != ')') return {};
    int depth = 0;
    std::size_t open = close;
    for (; open > 0; --open) {
      if (text_[open] == ')') ++depth;
      if (text_[open] == '(' && --depth == 0) break;
    }
    if (open == 0) return {};
    if (one.kind == Kind::kBlock && text_[text_.find_last_not_of(" \t\n", open - 1)] != ']')
      return {};
    std::size_t end = 0;
    std::vector<std::string> names = Arguments(open + 1, &end);
    for (std::string& name : names) {
      name = Trimmed(name.substr(0, name.find('=')));
      name = name.substr(name.find_last_of(" \t*&>") + 1);
    }
    return names;
  }

  // "&node", and the function returns node.
  bool Returns(int callable, const std::string& value) const {
    if (callable < 0 || !value.starts_with("&")) return false;
    const std::string body(source_.Text(source_.at(callable)));
    return std::regex_search(body, std::regex("\\breturn\\s+" + value.substr(1) + "\\s*;"));
  }

  // The address of what a call's result is assigned to.
  std::string ResultAt(const Point& point) const {
    if (!point.call) return kNone;
    const std::size_t begin = source_.at(point.statement).begin;
    if (begin == point.call->begin) return std::string("&") + kResult;  // to nothing
    const std::string before = text_.substr(begin, point.call->begin - begin);
    static const std::regex kAssigned(R"((\w+)\s*=\s*$)");
    std::smatch match;
    return std::regex_search(before, match, kAssigned) ? "&" + match[1].str() : kNone;
  }

  // An expression of the innermost call, as it reads `depth` frames further out.
  std::string Value(const std::vector<Point>& points, std::size_t depth,
                    const std::string& key) const {
    if (points.empty() || !points[0].call) return kNone;
    const Call& call = *points[0].call;
    std::string value;
    if (key == "stream") {
      value = StreamOf(call);
    } else {
      const std::size_t index = key == "node" ? 0 : key == "graph" ? 1 : std::stoul(key);
      if (index >= call.arguments.size()) return kNone;
      value = call.arguments[index];
    }
    for (std::size_t f = 0; f < depth; ++f) {
      const int callable = Callable(points[f]);
      const std::vector<std::string> names =
          callable >= 0 ? ParametersOf(callable) : std::vector<std::string>();
      const auto known = std::find(names.begin(), names.end(), value);
      if (known == names.end() && Returns(callable, value)) {
        value = ResultAt(points[f + 1]);
        if (value.empty()) return kNone;
        continue;
      }
      if (known == names.end()) continue;  // global, or what a lambda has captured
      const auto index = static_cast<std::size_t>(known - names.begin());
      const std::optional<Call>& caller = points[f + 1].call;
      if (!caller || index >= caller->arguments.size()) return kNone;
      value = caller->arguments[index];
    }
    return value;
  }

  // A variable of a loop around `of` that means another one, or none, at the other place.
  bool VariesBetween(const std::string& value, int of, int other) const {
    static const std::regex kNames(R"([A-Za-z_]\w*)");
    for (int up = of; up >= 0; up = source_.at(up).parent) {
      const Statement& one = source_.at(up);
      if (one.kind != Kind::kLoop || Encloses(up, other)) continue;
      const std::string head = text_.substr(one.head_begin, one.head_end - one.head_begin);
      for (std::sregex_iterator it(value.begin(), value.end(), kNames), end; it != end; ++it)
        if (std::regex_search(head, std::regex("\\b" + it->str() + "\\s*[=:]"))) return true;
    }
    return false;
  }

  bool Encloses(int outer, int inner) const {
    for (int up = inner; up >= 0; up = source_.at(up).parent)
      if (up == outer) return true;
    return false;
  }

  // What a variable of the function that holds a stream is initialised with.
  std::string Meaning(const std::string& value, int place) const {
    const std::regex initial("\\b" + std::regex_replace(value, std::regex(R"([^\w])"), R"(\$&)") +
                             R"(\s*=([^=;]*(?:==[^=;]*)*);)");
    for (const Statement& one : source_.statements()) {
      const std::string text(source_.Text(one));
      std::smatch match;
      if (one.kind == Kind::kSimple && one.begin < source_.at(place).begin &&
          Encloses(one.parent, place) && std::regex_search(text, match, initial))
        return Trimmed(match[1]);
    }
    return value;
  }

  // In one pass of the loops around both calls the two streams are one: they race in different
  // passes.
  bool OfOtherPass(const std::string& to, const std::string& at) const {
    const std::string a = Meaning(at, at_[i_].statement), b = Meaning(to, to_[j_].statement);
    const auto may_be = [](const std::string& choice, const std::string& one) {
      const std::size_t found = choice.rfind(one);
      return choice == one ||
             (choice.find('?') != std::string::npos && found != std::string::npos &&
              choice.find_last_of(" ?:", found) + 1 == found &&
              (found + one.size() == choice.size() ||
               std::string_view(" ?:)").find(choice[found + one.size()]) !=
                   std::string_view::npos));
    };
    if (may_be(a, b) || may_be(b, a)) return true;
    if (source_.at(to_[j_].statement).begin < source_.at(at_[i_].statement).begin) return false;
    // Given before, and written behind: in a pass before.
    static const std::regex kNames(R"([A-Za-z_]\w*)");
    for (int up = at_[i_].statement; up >= 0; up = source_.at(up).parent) {
      const Statement& one = source_.at(up);
      if (one.kind != Kind::kLoop || !Encloses(up, to_[j_].statement)) continue;
      const std::string head = text_.substr(one.head_begin, one.head_end - one.head_begin);
      for (std::sregex_iterator it(b.begin(), b.end(), kNames), end; it != end; ++it)
        if (std::regex_search(head, std::regex("\\b" + it->str() + "\\s*[=:]"))) return true;
    }
    return false;
  }

  // A variable that is declared in the same function, but not where `place` could see it.
  bool OutOfSight(const std::string& value, int of, int place) const {
    static const std::regex kNames(R"([A-Za-z_]\w*)");
    static const std::string kDeclared = R"(\b(?:cudaStream_t|CUstream|auto)\b[^;(]*[\s*&,])";
    for (std::sregex_iterator it(value.begin(), value.end(), kNames), end; it != end; ++it) {
      const std::regex declared(kDeclared + it->str() + R"(\b)");
      for (std::size_t i = 0; i < source_.statements().size(); ++i) {
        const Statement& one = source_.at(static_cast<int>(i));
        if (one.kind != Kind::kSimple || one.begin > source_.at(of).begin ||
            source_.Function(static_cast<int>(i)) != source_.Function(of) ||
            !Encloses(one.parent, of) ||
            !std::regex_search(std::string(source_.Text(one)), declared))
          continue;
        if (one.begin > source_.at(place).begin || !Encloses(one.parent, place)) return true;
      }
    }
    return false;
  }

  Result<std::string> Filled(const std::string& pattern) const {
    static const std::regex kNames(R"(\$(at|to)\.(stream|node|graph|\d+))");
    std::string text = pattern, out;
    for (std::smatch match; std::regex_search(text, match, kNames);) {
      const bool at = match[1] == "at";
      const std::string value = at ? Value(at_, i_, match[2]) : Value(to_, j_, match[2]);
      if (value.empty() || (!at && value.ends_with(kResult)))
        return Fail("nothing stands for {} there", match.str());
      if (OutOfSight(value, at ? at_[0].statement : to_[0].statement, at_[i_].statement))
        return Fail("{} is not declared there", value);
      const bool devices = pattern.find("cudaStreamGetDevice") != std::string::npos;
      const bool waits = pattern.starts_with("cudaStreamSynchronize");
      // Stream 0 is another one on every device, and a graph's node has none.
      if (!at && match[2] == "stream" &&
          (VariesBetween(value, to_[j_].statement, at_[i_].statement) ||
           ((devices || waits) && value == "0") ||
           (devices && OfOtherPass(value, Value(at_, i_, "stream")))))
        return std::string(kAllDevices);
      out += match.prefix().str() + value;
      text = match.suffix();
    }
    return out + text;
  }

  // Once, in front of loops that only wait for what was given before them.
  int OutOfLoops(int statement) const {
    if (to_.empty()) return statement;
    int found = statement;
    for (int up = statement; up >= 0; up = source_.at(up).parent) {
      if (source_.at(up).kind != Kind::kLoop || Encloses(up, to_[j_].statement)) continue;
      // What is waited for may be given to a stream again in there, as part of a graph.
      if (source_.Text(source_.at(up)).find("GraphLaunch") != std::string_view::npos) break;
      found = up;
    }
    return source_.at(found).begin > source_.at(to_[j_].statement).begin ? found : statement;
  }

  Result<std::string> Insert(int statement, bool after, const std::string& what) {
    const Statement& one = source_.at(statement);
    std::string old(source_.Text(one));
    const bool kept = after && what.find(kResult) != std::string::npos;
    if (kept) old = "{ cudaGraphNode_t " + std::string(kResult) + " = " + old;
    std::string made = after ? old + " " + what : what + " " + old;
    if (kept) made += " }";
    const int parent = one.parent;
    const Kind above = parent >= 0 ? source_.at(parent).kind : Kind::kFunction;
    if (above != Kind::kBlock && above != Kind::kFunction) made = "{ " + made + " }";
    text_.replace(one.begin, one.end - one.begin, made);
    return text_;
  }

  Result<std::string> ReplaceCall(const std::string& what) {
    if (!at_[0].call || at_[0].call->name != edit_.value("from", ""))
      return Fail("no call of {} at {}", edit_.value("from", ""), edit_["at"].dump());
    text_.replace(at_[0].call->begin, at_[0].call->end - at_[0].call->begin, what);
    return text_;
  }

  const Json& edit_;
  std::string file_;
  Source source_;
  std::string text_;
  std::vector<Point> at_, to_;
  std::size_t i_ = 0, j_ = 0;
};

}  // namespace

Result<std::string> ApplyHostEdit(const Json& edit, const std::string& file,
                                  const std::string& text) {
  return HostEditor(edit, file, text).Run();
}

}  // namespace allranks::remedies
