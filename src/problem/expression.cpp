// A recursive-descent parser for the sizes in problem.toml, and their evaluation.
#include "problem/expression.h"

#include <cctype>
#include <optional>
#include <vector>

#include "base/check.h"
#include "problem/type.h"

namespace allranks::problem {

struct Expression::Node {
  enum class Kind {
    kNumber,
    kName,
    kNegate,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kRemainder,
    kMin,
    kMax,
    kCeilDiv,
    kLog2Ceil,
  };
  Kind kind = Kind::kNumber;
  std::int64_t value = 0;  // kNumber
  std::string name;        // kName
  std::vector<std::shared_ptr<const Node>> parts;
};

namespace {

using Node = Expression::Node;
using Kind = Node::Kind;
using Part = std::shared_ptr<const Node>;

constexpr int kDeepest = 64;             // parentheses within parentheses
constexpr std::size_t kLongest = 4'096;  // characters

struct Function {
  const char* name;
  Kind kind;
  std::size_t arguments;
};
constexpr Function kFunctions[] = {
    {"min", Kind::kMin, 2},
    {"max", Kind::kMax, 2},
    {"ceil_div", Kind::kCeilDiv, 2},
    {"log2_ceil", Kind::kLog2Ceil, 1},
};

class Parser {
 public:
  Parser(std::string_view text, const Values& names) : text_(text), names_(names) {}

  Result<Part> Parse() {
    if (text_.size() > kLongest) return Fail("the expression is too long");
    auto whole = Sum(0);
    if (!whole) return whole;
    Skip();
    if (at_ < text_.size()) return Wrong("expected an operator or the end");
    return whole;
  }

 private:
  void Skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool Take(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  tl::unexpected<Error> Wrong(std::string_view what) const {
    if (at_ >= text_.size()) return Fail("\"{}\" ends too early: {}", text_, what);
    return Fail("\"{}\" at '{}': {}", text_, text_.substr(at_), what);
  }

  static Part Make(Kind kind, std::vector<Part> parts) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->parts = std::move(parts);
    return node;
  }

  Result<Part> Sum(int depth) {
    auto left = Product(depth);
    while (left) {
      Kind kind;
      if (Take('+')) {
        kind = Kind::kAdd;
      } else if (Take('-')) {
        kind = Kind::kSubtract;
      } else {
        break;
      }
      auto right = Product(depth);
      if (!right) return right;
      left = Make(kind, {*left, *right});
    }
    return left;
  }

  Result<Part> Product(int depth) {
    auto left = Unary(depth);
    while (left) {
      Kind kind;
      if (Take('*')) {
        kind = Kind::kMultiply;
      } else if (Take('/')) {
        kind = Kind::kDivide;
      } else if (Take('%')) {
        kind = Kind::kRemainder;
      } else {
        break;
      }
      auto right = Unary(depth);
      if (!right) return right;
      left = Make(kind, {*left, *right});
    }
    return left;
  }

  Result<Part> Unary(int depth) {
    if (depth > kDeepest) return Wrong("nested too deeply");
    if (Take('-')) {
      auto operand = Unary(depth + 1);
      if (!operand) return operand;
      return Make(Kind::kNegate, {*operand});
    }
    if (Take('(')) {
      auto inside = Sum(depth + 1);
      if (!inside) return inside;
      if (!Take(')')) return Wrong("expected )");
      return inside;
    }
    Skip();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) return Number();
    if (at_ < text_.size() && IsLetter(text_[at_])) return Named(depth);
    return Wrong("expected a number, a name or (");
  }

  static bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }

  Result<Part> Number() {
    std::int64_t value = 0;
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        at_ = begin;
        return Wrong("the number does not fit in 64 bits");
      }
      ++at_;
    }
    auto node = std::make_shared<Node>();
    node->value = value;
    return node;
  }

  std::string Word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (IsLetter(text_[at_]) || std::isdigit(static_cast<unsigned char>(text_[at_])))) {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  Result<Part> Named(int depth) {
    const std::size_t begin = at_;
    std::string word = Word();
    if (word == "sizeof") {
      if (!Take('(')) return Wrong("expected sizeof(TYPE)");
      Skip();
      const std::string type = Word();
      if (!Take(')')) return Wrong("expected sizeof(TYPE)");
      if (const auto known = TypeNamed(type)) {
        auto node = std::make_shared<Node>();
        node->value = static_cast<std::int64_t>(SizeOf(*known));
        return node;
      }
      word = "sizeof(" + type + ")";
    } else if (Take('(')) {
      return Call(word, begin, depth);
    }
    if (names_.find(word) == names_.end()) {
      at_ = begin;
      std::string known;
      for (const auto& [name, value] : names_) known += (known.empty() ? "" : ", ") + name;
      return Wrong(fmt::format("'{}' is unknown; known are {}", word, known));
    }
    auto node = std::make_shared<Node>();
    node->kind = Kind::kName;
    node->name = std::move(word);
    return node;
  }

  Result<Part> Call(const std::string& name, std::size_t begin, int depth) {
    for (const Function& function : kFunctions) {
      if (name != function.name) continue;
      std::vector<Part> arguments;
      do {
        auto argument = Sum(depth + 1);
        if (!argument) return argument;
        arguments.push_back(*argument);
      } while (Take(','));
      if (!Take(')')) return Wrong("expected , or )");
      if (arguments.size() != function.arguments) {
        at_ = begin;
        return Wrong(fmt::format("{} takes {} arguments", name, function.arguments));
      }
      return Make(function.kind, std::move(arguments));
    }
    at_ = begin;
    return Wrong(fmt::format(
        "no function '{}'; the functions are sizeof, min, max, ceil_div, log2_ceil", name));
  }

  std::string_view text_;
  const Values& names_;
  std::size_t at_ = 0;
};

class Evaluator {
 public:
  Evaluator(const std::string& text, const Values& values) : text_(text), values_(values) {}

  Result<std::int64_t> Of(const Node& node) {
    if (node.kind == Kind::kNumber) return node.value;
    if (node.kind == Kind::kName) {
      const auto found = values_.find(node.name);
      if (found == values_.end()) return Fail("\"{}\": '{}' has no value", text_, node.name);
      return found->second;
    }
    auto a = Of(*node.parts[0]);
    if (!a) return a;
    if (node.parts.size() == 1) return node.kind == Kind::kNegate ? Negate(*a) : Log2Ceil(*a);
    auto b = Of(*node.parts[1]);
    if (!b) return b;
    return Combine(node.kind, *a, *b);
  }

 private:
  tl::unexpected<Error> TooLarge() const {
    return Fail("\"{}\" does not fit in 64 bits here", text_);
  }

  Result<std::int64_t> Negate(std::int64_t a) const {
    std::int64_t value = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, a, &value)) return TooLarge();
    return value;
  }

  Result<std::int64_t> Log2Ceil(std::int64_t a) const {
    if (a < 1) return Fail("\"{}\": log2_ceil of {}", text_, a);
    std::int64_t bits = 0;
    while (bits < 62 && (std::int64_t{1} << bits) < a) ++bits;
    return bits;
  }

  Result<std::int64_t> Combine(Kind kind, std::int64_t a, std::int64_t b) const {
    std::int64_t value = 0;
    switch (kind) {
      case Kind::kAdd:
        if (__builtin_add_overflow(a, b, &value)) return TooLarge();
        return value;
      case Kind::kSubtract:
        if (__builtin_sub_overflow(a, b, &value)) return TooLarge();
        return value;
      case Kind::kMultiply:
        if (__builtin_mul_overflow(a, b, &value)) return TooLarge();
        return value;
      case Kind::kMin:
        return a < b ? a : b;
      case Kind::kMax:
        return a < b ? b : a;
      case Kind::kDivide:
      case Kind::kRemainder:
      case Kind::kCeilDiv:
        if (b == 0) return Fail("\"{}\" divides by zero here", text_);
        if (b == -1) return kind == Kind::kRemainder ? Result<std::int64_t>(0) : Negate(a);
        if (kind == Kind::kRemainder) return a % b;
        value = a / b;
        if (kind == Kind::kCeilDiv && a % b != 0 && (a < 0) == (b < 0)) ++value;
        return value;
      default:
        CHECK(false, "operator {}", static_cast<int>(kind));
    }
    return 0;
  }

  const std::string& text_;
  const Values& values_;
};

}  // namespace

Result<Expression> Expression::Parse(std::string_view text, const Values& names) {
  auto root = Parser(text, names).Parse();
  if (!root) return Fail(root.error());
  Expression expression;
  expression.text_ = std::string(text);
  expression.root_ = std::move(*root);
  return expression;
}

Result<std::int64_t> Expression::Evaluate(const Values& values) const {
  if (root_ == nullptr) return 0;
  return Evaluator(text_, values).Of(*root_);
}

}  // namespace allranks::problem
