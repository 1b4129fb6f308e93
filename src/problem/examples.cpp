#include "problem/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "problem/facts.h"
#include "problem/source.h"
#include "problem/text.h"

namespace allranks::problem {
namespace {

int RankOf(const std::string& level) { return level == "easy" ? 0 : level == "medium" ? 1 : 2; }

// Tags of mutants (source.h) mean nothing to a reader.
std::string WithoutTags(const std::string& source) {
  std::string plain;
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    std::string line = source.substr(at, end - at);
    if (const std::size_t tag = line.find("//@"); tag != std::string::npos) {
      line.erase(tag);
      line.erase(line.find_last_not_of(' ') + 1);
    }
    plain += line + "\n";
    at = end + 1;
  }
  return plain;
}

Result<Example> MakeExample(const Problem& problem) {
  const Result<std::string> statement = ReadFile(problem.folder / "statement.md");
  if (!statement) return Fail(statement.error());
  const Result<std::string> solution = SolutionOf(problem, "reference.cu");
  if (!solution) return Fail(solution.error());
  return Example{problem.slug,
                 fmt::format("<example>\n{}\n\n`problem.h`:\n\n```cpp\n{}\n```\n\nA correct "
                             "solution:\n\n```cuda\n{}\n```\n</example>\n",
                             Trimmed(*statement), Trimmed(HeaderOf(problem)),
                             Trimmed(WithoutTags(*solution)))};
}

}  // namespace

Result<std::vector<Example>> ChooseExamples(const Problem& problem, const std::vector<Problem>& all,
                                            int count) {
  std::vector<const Problem*> fit;
  for (const Problem& other : all) {
    if (other.split == Split::kPublic && other.library == problem.library &&
        other.family != problem.family && other.slug != problem.slug)
      fit.push_back(&other);
  }
  const auto key = [&](const Problem* other) {
    return std::tuple(other->category != problem.category, RankOf(other->level), other->slug);
  };
  std::sort(fit.begin(), fit.end(),
            [&](const Problem* a, const Problem* b) { return key(a) < key(b); });
  std::vector<Example> examples;
  std::set<std::string> families;
  for (const Problem* other : fit) {
    if (std::cmp_equal(examples.size(), count)) break;
    if (!families.insert(other->family).second) continue;
    Result<Example> example = MakeExample(*other);
    if (!example) return Fail(example.error());
    examples.push_back(std::move(*example));
  }
  if (std::cmp_less(examples.size(), count))
    return Fail(
        "{} has {} examples, not {}: an example is a public problem of the same library ({}) and "
        "of another family",
        problem.slug, examples.size(), count, problem.library);
  return examples;
}

std::string TextOf(const std::vector<Example>& examples) {
  if (examples.empty()) return "";
  std::string text = examples.size() == 1
                         ? "First a solved example: another problem, and a solution that passes. "
                           "Your task follows it.\n\n"
                         : fmt::format(
                               "First {} solved examples: other problems, each with a "
                               "solution that passes. Your task follows them.\n\n",
                               examples.size());
  for (const Example& example : examples) text += example.text + "\n";
  return text;
}

}  // namespace allranks::problem
