// `catalogue`: docs/catalogue.md, one line per problem, and which examples of CommBench and
// ParallelKernelBench have no counterpart yet. --write writes it; --check fails if it is not what
// would be written, or if a problem says that it covers an example that does not exist.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "base/files.h"
#include "problem/problem.h"

namespace allranks::catalogue {
namespace {

namespace fs = std::filesystem;
using problem::Problem;

const fs::path kSource = ALLRANKS_SOURCE_DIR;

struct Benchmark {
  const char* name;
  const char* prefix;
};
constexpr Benchmark kBenchmarks[] = {{"CommBench", "CB"}, {"ParallelKernelBench", "PKB"}};

// Examples of other benchmarks, in their order: identifier and name.
using Examples = std::vector<std::pair<std::string, std::string>>;

Result<Examples> ReadExamples() {
  const Result<std::string> text = ReadWhole(kSource / "tools/catalogue/benchmarks.tsv");
  if (!text) return Fail(text.error());
  Examples examples;
  std::istringstream lines(*text);
  std::string line;
  std::getline(lines, line);  // the names of the columns
  while (std::getline(lines, line)) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) return Fail("benchmarks.tsv: '{}' has no tab", line);
    examples.emplace_back(line.substr(0, tab), line.substr(tab + 1));
  }
  return examples;
}

Result<std::vector<Problem>> ReadProblems() {
  std::vector<Problem> all;
  for (const fs::path& folder : problem::Find(kSource / "problems")) {
    Result<std::vector<Problem>> variants = problem::LoadAll(folder);
    if (!variants) return Fail(variants.error());
    for (Problem& one : *variants) all.push_back(std::move(one));
  }
  return all;
}

std::string Joined(const std::vector<std::string>& words) {
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ", "));
}

// "tp 12, dp 3": how many problems have each value.
template <class F>
std::string Counts(const std::vector<Problem>& problems, F values) {
  std::map<std::string, int> counts;
  for (const Problem& one : problems)
    for (const std::string& value : values(one)) ++counts[value];
  std::vector<std::string> words;
  for (const auto& [value, count] : counts) words.push_back(fmt::format("{} {}", value, count));
  return Joined(words);
}

std::string Missing(const Examples& examples, const Benchmark& benchmark,
                    const std::set<std::string>& covered) {
  std::vector<std::string> missing;
  std::size_t all = 0;
  for (const auto& [id, name] : examples) {
    if (!id.starts_with(benchmark.prefix)) continue;
    ++all;
    if (!covered.contains(id)) missing.push_back(fmt::format("{} {}", id, name));
  }
  return fmt::format("**{}**: {} of {} have a counterpart. Missing: {}.\n", benchmark.name,
                     all - missing.size(), all, Joined(missing));
}

Result<std::string> Render() {
  const Result<Examples> examples = ReadExamples();
  if (!examples) return Fail(examples.error());
  const Result<std::vector<Problem>> problems = ReadProblems();
  if (!problems) return Fail(problems.error());
  std::set<std::string> known, covered, families;
  for (const auto& [id, name] : *examples) known.insert(id);
  for (const Problem& one : *problems) {
    families.insert(one.family);
    for (const std::string& id : one.covers) {
      if (!known.contains(id)) return Fail("{}: covers '{}', which no benchmark has", one.slug, id);
      covered.insert(id);
    }
  }
  std::string text = fmt::format(
      "# Problems\n\nWritten by `catalogue --write` from `problems/*/*/problem.toml`.\n\n"
      "{} problems of {} families. Categories: {}. Parallelism: {}. Levels: {}.\n",
      problems->size(), families.size(),
      Counts(*problems, [](const Problem& one) { return std::vector{one.category}; }),
      Counts(*problems, [](const Problem& one) { return one.parallelism; }),
      Counts(*problems, [](const Problem& one) { return std::vector{one.level}; }));
  for (const std::string& category : problem::Categories()) {
    text += fmt::format(
        "\n## {}\n\n| problem | family | level | parallelism | window | what | covers |\n"
        "|---|---|---|---|---|---|---|\n",
        category);
    for (const Problem& one : *problems) {
      if (one.category != category) continue;
      text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", one.slug, one.family,
                          one.level, Joined(one.parallelism), problem::NameOf(one.window),
                          one.title, Joined(one.covers));
    }
  }
  text += "\n## Other benchmarks\n\nA counterpart has the same semantics, here without a GPU.\n";
  for (const Benchmark& benchmark : kBenchmarks)
    text += "\n" + Missing(*examples, benchmark, covered);
  return text;
}

int Main(int argc, char** argv) {
  CLI::App app("Writes or checks docs/catalogue.md");
  bool write = false, check = false;
  app.add_flag("--write", write, "Write it");
  app.add_flag("--check", check, "Fail if it is not what would be written")->excludes("--write");
  CLI11_PARSE(app, argc, argv);
  const Result<std::string> text = Render();
  if (!text) {
    fmt::print(stderr, "catalogue: {}\n", text.error().message);
    return 1;
  }
  const fs::path file = kSource / "docs/catalogue.md";
  if (write) {
    const Status wrote = WriteWhole(file, *text);
    if (!wrote) fmt::print(stderr, "catalogue: {}\n", wrote.error().message);
    return wrote ? 0 : 1;
  }
  if (!check) {
    fmt::print("{}", *text);
    return 0;
  }
  if (ReadWhole(file).value_or("") == *text) return 0;
  fmt::print(stderr, "docs/catalogue.md is not what `catalogue --write` would write\n");
  return 1;
}

}  // namespace
}  // namespace allranks::catalogue

int main(int argc, char** argv) { return allranks::catalogue::Main(argc, argv); }
