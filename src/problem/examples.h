// Solved examples for a prompt: other problems, with their references.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "problem/problem.h"

namespace allranks::problem {

struct Example {
  std::string slug;
  std::string text;  // statement, problem.h and the reference, as a model reads them
};

// `count` examples for `problem` from `all`: public problems of the same library and of other
// families, no two of one family. The same choice each time: those of the problem's category come
// first, easy ones before hard ones, then by slug. Fails if there are fewer, with their number.
Result<std::vector<Example>> ChooseExamples(const Problem& problem, const std::vector<Problem>& all,
                                            int count);

// What stands before the task; empty without examples.
std::string TextOf(const std::vector<Example>& examples);

}  // namespace allranks::problem
