#include "problem/level.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "problem/source.h"

namespace allranks::problem {
namespace {

constexpr std::size_t kManyHandovers = 3;           // tags
constexpr std::size_t kLong = 70, kVeryLong = 110;  // lines of code
constexpr std::size_t kMedium = 2, kHard = 3;       // difficulties

bool IsRagged(const Tensor& tensor) {
  return tensor.dir == Tensor::Dir::kIn &&
         (tensor.draw.kind == Draw::Kind::kCounts || tensor.draw.kind == Draw::Kind::kTopK);
}

bool IsNarrow(const Tensor& tensor) {
  return tensor.type == Type::kF16 || tensor.type == Type::kBf16;
}

// The most latencies behind each other in a timed case.
std::int64_t HopsOf(const Problem& problem) {
  std::int64_t most = 0;
  for (const Case& one : problem.cases) {
    if (one.kind != Case::Kind::kTimed) continue;
    most = std::max(most, problem.floor.hops.Evaluate(ValuesOf(problem, one)).value_or(0));
  }
  return most;
}

// Places of the reference where one thread hands over to another, so that a weaker order is a bug.
std::size_t HandoversOf(const Problem& problem) {
  std::set<std::string> tags;
  for (const Mutant& mutant : problem.mutants) {
    const bool order = mutant.op == "relax" || mutant.op == "narrow" || mutant.op == "weak";
    if (order && mutant.of == "reference.cu") tags.insert(mutant.tag);
  }
  return tags.size();
}

// Neither blank nor comments alone.
std::size_t LinesOfCode(const std::string& text) {
  std::size_t count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    count += first != std::string::npos && line.compare(first, 2, "//") != 0;
  }
  return count;
}

}  // namespace

Result<std::vector<std::string>> Difficulties(const Problem& problem) {
  std::vector<std::string> found;
  const auto note = [&](bool is, const char* what) {
    if (is) found.emplace_back(what);
  };
  const auto any = [&](bool (*is)(const Tensor&)) {
    return std::any_of(problem.tensors.begin(), problem.tensors.end(), is);
  };
  const Floor& floor = problem.floor;
  note(!floor.flops.empty() && !(floor.ingress.empty() && floor.egress.empty()), "overlap");
  note(any(IsRagged), "ragged");
  note(any(IsNarrow), "narrow types");
  note(HopsOf(problem) >= 2, "chain");
  note(problem.window == Window::kHost, "host");
  note(Allows(problem, "multicast"), "multicast");
  note(HandoversOf(problem) >= kManyHandovers, "handovers");
  const Result<std::string> reference = ReadFile(problem.folder / "reference.cu");
  if (!reference) return Fail(reference.error());
  const std::size_t lines = LinesOfCode(*reference);
  note(lines >= kLong, "long");
  note(lines >= kVeryLong, "very long");
  return found;
}

std::string LevelOf(const std::vector<std::string>& difficulties) {
  return difficulties.size() >= kHard ? "hard" : difficulties.size() >= kMedium ? "medium" : "easy";
}

}  // namespace allranks::problem
