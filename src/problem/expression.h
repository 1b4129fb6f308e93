// Integer expressions of problem.toml: + - * / % ( ), numbers, parameters, world, sizeof(T),
// min(a, b), max(a, b), ceil_div(a, b), log2_ceil(a). Division by zero and overflow are errors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace allranks::problem {

using Values = std::map<std::string, std::int64_t, std::less<>>;

class Expression {
 public:
  Expression() = default;  // empty: evaluates to 0
  // `names` says which names are known, with any values; others are an error that lists them. The
  // size of a type that a problem varies is a name as well: "sizeof(T)".
  static Result<Expression> Parse(std::string_view text, const Values& names);

  bool empty() const { return root_ == nullptr; }
  const std::string& text() const { return text_; }
  // Fails on division by zero and overflow.
  Result<std::int64_t> Evaluate(const Values& values) const;

  struct Node;

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace allranks::problem
