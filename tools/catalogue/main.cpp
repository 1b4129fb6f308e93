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
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "base/files.h"
#include "judge/roofline.h"
#include "judge/score.h"
#include "problem/level.h"
#include "problem/lock.h"
#include "problem/problem.h"

namespace allranks::catalogue {
namespace {

namespace fs = std::filesystem;
using problem::Problem;

const fs::path kSource = ALLRANKS_SOURCE_DIR;
constexpr std::string_view kWhyLow = "# Below half of the roofline: ";

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

// The files of a problem without its lock.
struct Size {
  std::size_t lines = 0, files = 0;
};

Size SizeOf(const fs::path& folder) {
  Size size;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() == ".lock") continue;
    const std::string text = ReadWhole(entry.path()).value_or("");
    size.lines += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    ++size.files;
  }
  return size;
}

// Distinct lines of CUDA over all of them, in all problems, blank ones aside.
double DistinctShare() {
  std::set<std::string> seen;
  std::size_t all = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "problems")) {
    if (entry.path().extension() != ".cu") continue;
    std::istringstream lines(ReadWhole(entry.path()).value_or(""));
    for (std::string line; std::getline(lines, line);) {
      line.erase(0, line.find_first_not_of(' '));
      if (line.empty()) continue;
      seen.insert(line);
      ++all;
    }
  }
  return all == 0 ? 0 : static_cast<double>(seen.size()) / static_cast<double>(all);
}

// By the lock of h100x8.
struct Times {
  double gain = 0;              // the baseline's time over the reference's
  std::optional<double> share;  // of the roofline, that the reference reaches; its score
};

Result<Times> TimesOf(const Problem& problem, const node::Profile& profile) {
  const Result<problem::Lock> lock = problem::LoadLock(problem);
  if (!lock) return Fail(lock.error());
  std::vector<judge::CaseResult> cases;
  for (const problem::Case& one : problem.cases) {
    if (one.kind != problem::Case::Kind::kTimed) continue;
    const problem::LockEntry* entry = lock->Find(profile.name, one.name);
    if (entry == nullptr) return Fail("{}: reference.lock lacks {}", problem.slug, one.name);
    const Result<judge::FloorValues> floor = judge::FloorOf(problem, one);
    if (!floor) return Fail(floor.error());
    judge::CaseResult& result = cases.emplace_back();
    result.what = one;
    result.ran = true;
    result.call_ns = entry->reference.call_ns;
    result.baseline_ns = entry->baseline.call_ns;
    result.roofline_ns = judge::RooflineNs(profile, problem, one.world, *floor);
  }
  Times times{.gain = judge::SpeedupOverBaseline(cases).value_or(0), .share = {}};
  // Where the least traffic depends on what was drawn, only a judgement knows it.
  const std::string oracle = ReadWhole(problem.folder / "oracle.cpp").value_or("");
  if (oracle.find("void Floors(") == std::string::npos) times.share = judge::Score(problem, cases);
  return times;
}

template <class T>
T Median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
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
    const Result<std::vector<std::string>> difficulties = problem::Difficulties(one);
    if (!difficulties) return Fail(difficulties.error());
    if (const std::string level = problem::LevelOf(*difficulties); level != one.level) {
      return Fail("{}: level is '{}'; by the rubric of docs/problems.md ({}) it is '{}'", one.slug,
                  one.level, Joined(*difficulties), level);
    }
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
  const Result<node::Profile> profile =
      node::LoadProfile((kSource / "profiles/h100x8.toml").string());
  if (!profile) return Fail(profile.error());
  std::map<std::string, Times> times;  // by slug
  std::vector<double> shares;
  for (const Problem& one : *problems) {
    const Result<Times> own = TimesOf(one, *profile);
    if (!own) return Fail(own.error());
    if (own->share) shares.push_back(*own->share * 100);
    const std::string toml = ReadWhole(one.folder / "problem.toml").value_or("");
    if (own->share && *own->share < 0.5 && toml.find(kWhyLow) == std::string::npos)
      return Fail(
          "{}: the reference reaches {:.0f} % of the roofline; say why in problem.toml ({})",
          one.slug, *own->share * 100, kWhyLow);
    times[one.slug] = *own;
  }
  const auto low = std::count_if(shares.begin(), shares.end(), [](double s) { return s < 50; });
  std::vector<std::size_t> lines, files;
  std::map<fs::path, Size> sizes;
  std::size_t mutants = 0;
  for (const Problem& one : *problems) {
    mutants += one.mutants.size();
    if (sizes.contains(one.folder)) continue;  // of another variant
    const Size size = sizes[one.folder] = SizeOf(one.folder);
    lines.push_back(size.lines);
    files.push_back(size.files);
  }
  text += fmt::format(
      "\n{} mutants. Lines of a problem without its lock: median {}, at most {}; files: median {}, "
      "at most {}. Of the lines of CUDA {:.0f} % are distinct.\n\n"
      "`roofline` is the share of it that the reference reaches on h100x8, - where only a "
      "judgement "
      "knows it; `gain` the baseline's time over the reference's. Both are means over the timed "
      "cases (docs/judge.md). Of those shown the median is {:.0f} %, and {} of {} are below 50 "
      "%.\n",
      mutants, Median(lines), *std::max_element(lines.begin(), lines.end()), Median(files),
      *std::max_element(files.begin(), files.end()), DistinctShare() * 100, Median(shares), low,
      shares.size());
  for (const std::string& category : problem::Categories()) {
    text += fmt::format(
        "\n## {}\n\n"
        "| problem | family | level | parallelism | window | what | mutants | lines | "
        "roofline | gain | "
        "covers |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n",
        category);
    for (const Problem& one : *problems) {
      if (one.category != category) continue;
      const Times& own = times[one.slug];
      text +=
          fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {:.1f} | {} |\n", one.slug,
                      one.family, one.level, Joined(one.parallelism), problem::NameOf(one.window),
                      one.title, one.mutants.size(), sizes[one.folder].lines,
                      own.share ? fmt::format("{:.0f} %", *own.share * 100) : "-", own.gain,
                      Joined(one.covers));
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
