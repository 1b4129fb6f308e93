// Do remedies cure? Each program that is wrong on purpose is built and run under `exec --check`
// until there is a finding; the edits of the first one are applied to a copy of its source, to the
// letter, and the copy is built and run again under the same schedules. It is cured if nothing is
// found that counts and the program says that its results are right. Where something is left, the
// next remedy is applied as well: `cured_later`.
//
// Programs say in their first lines what is wrong with which -DBUG=n:
//   // EXPECT 2 race: the flag is stored relaxed
//   // RANKS 4
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "common/run.h"
#include "remedies/apply.h"

namespace allranks::remedies {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kSeconds = 120;
constexpr int kRounds = 3;

struct Choice {
  std::vector<std::string> sources, only;
  std::string command = ALLRANKS_COMMAND, folder, list;
  int schedules = 10, jobs = 2;
  bool verbose = false;
};

struct Variant {
  fs::path source;
  int bug = 0, ranks = 0;
  std::string kind;
  std::string Name() const { return fmt::format("{}:{}", source.stem().string(), bug); }
};

struct Result1 {
  std::string word,
      text;  // cured, cured_later, not_cured, no_edit, not_applied, not_found, not_built
  std::size_t findings = 0;
};

std::vector<Variant> VariantsOf(const fs::path& source) {
  static const std::regex kExpect(R"(// EXPECT (\d+) ([a-z_|]+))"), kRanks(R"(// RANKS (\d+))");
  std::vector<Variant> all;
  int ranks = 0;
  std::ifstream in(source);
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kRanks)) ranks = std::stoi(match[1]);
    if (!std::regex_search(line, match, kExpect)) continue;
    const std::string kind = match[2];
    if (match[1] == "0" || kind == "none" || kind == "portability") continue;
    all.push_back({source, std::stoi(match[1]), 0, kind});
  }
  for (Variant& one : all) one.ranks = ranks;
  return all;
}

// The source without what other variants have: line by line the same, so that positions hold.
std::string Resolved(const Variant& variant, const fs::path& folder) {
  const std::string text = tools::ReadText(variant.source);
  std::vector<std::string> lines, out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  const fs::path plain = folder / "plain.cpp";
  {
    std::ofstream file(plain);
    for (const std::string& line : lines)
      file << (line.starts_with("#include") ? "" : line) << '\n';
  }
  const tools::Outcome ran = tools::Run(
      {"g++", "-E", "-fdirectives-only", fmt::format("-DBUG={}", variant.bug), plain.string()},
      folder, kSeconds);
  out.resize(lines.size());
  std::size_t at = 0;
  bool here = false;
  std::istringstream made(ran.out);
  static const std::regex kMark(R"re(^# (\d+) "([^"]*)".*)re");
  for (std::string line; std::getline(made, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kMark)) {
      here = fs::path(match[2].str()).filename() == "plain.cpp";
      at = std::stoul(match[1]) - 1;
      continue;
    }
    if (here && at < out.size()) out[at] = line;
    ++at;
  }
  std::string result;
  for (std::size_t i = 0; i < lines.size(); ++i)
    result += (lines[i].starts_with("#include") ? lines[i] : out[i]) + "\n";
  return result;
}

class Bench {
 public:
  explicit Bench(const Choice& choice) : choice_(choice) {}

  Result1 Try(const Variant& variant, const fs::path& folder) const {
    const fs::path source = folder / variant.source.filename();
    const std::string text = Resolved(variant, folder);
    if (const std::string error = Build(variant, source, text, folder); !error.empty())
      return {"not_built", error, 0};
    Json found;
    std::string wrong;
    for (int schedule = 0; schedule <= choice_.schedules && found.empty(); ++schedule)
      found = Counted(variant, folder, schedule, &wrong);
    if (found.empty()) return {"not_found", wrong, 0};
    const std::size_t count = found.size();
    // The first remedy: that of the first finding that has one.
    std::stable_partition(found.begin(), found.end(),
                          [](const Json& one) { return !one["edits"].empty(); });
    const Json first = found.front();
    const std::string what = first.value("kind", "") + ": " + first.value("advice", "");
    if (choice_.verbose) {
      const std::lock_guard lock(mutex_);
      fmt::print("{} {}\n", variant.Name(), first.dump());
    }
    if (!first.contains("edits") || first["edits"].empty()) return {"no_edit", what, count};
    // What is wrong at several places has a finding, and a remedy, for each.
    std::string now = text;
    std::string trouble;
    for (int round = 0; round < kRounds; ++round) {
      const Json& next = found.front();
      if (next["edits"].empty()) break;
      const Result<std::string> edited = Apply(next["edits"], source.string(), now);
      if (!edited) {
        if (round == 0) return {"not_applied", edited.error().message + "; " + what, count};
        break;
      }
      if (const std::string error = Build(variant, source, *edited, folder); !error.empty()) {
        if (round > 0) break;
        return {"not_applied", "does not compile: " + error.substr(0, 300) + "; " + what, count};
      }
      now = *edited;
      trouble.clear();
      found = Json::array();
      for (int schedule = 0; schedule <= choice_.schedules && trouble.empty(); ++schedule) {
        found = Counted(variant, folder, schedule, &trouble);
        if (!found.empty())
          trouble = fmt::format("schedule {}: {}: {}", schedule, found[0].value("kind", ""),
                                found[0].value("advice", ""));
      }
      if (trouble.empty())
        return {round == 0 ? "cured" : "cured_later",
                round == 0 ? what : fmt::format("by {} remedies; {}", round + 1, what), count};
      if (found.empty()) break;
    }
    return {"not_cured", trouble + " // " + what, count};
  }

 private:
  std::string Build(const Variant& variant, const fs::path& source, const std::string& text,
                    const fs::path& folder) const {
    std::ofstream(source, std::ios::binary) << text;
    const fs::path home = fs::absolute(variant.source).parent_path();
    std::vector<std::string> words = {ALLRANKS_NVCC,
                                      "-cudart",
                                      "shared",
                                      "-lineinfo",
                                      "-g",
                                      "-std=c++20",
                                      "-gencode=arch=compute_90,code=compute_90",
                                      fmt::format("-DBUG={}", variant.bug),
                                      "-I" + home.string(),
                                      "-I" + home.parent_path().string(),
                                      "-lcuda",
                                      "-o",
                                      (folder / "program").string(),
                                      source.string()};
    const tools::Outcome built = tools::Run(words, folder, kSeconds);
    return built.code == 0 ? "" : "nvcc: " + built.err;
  }

  // Findings that count. `wrong`: what else went wrong.
  Json Counted(const Variant& variant, const fs::path& folder, int schedule,
               std::string* wrong) const {
    const fs::path findings = folder / "findings";
    fs::remove(findings);
    std::vector<std::string> words = {
        choice_.command,          "exec",       "--check",        "--schedule",
        std::to_string(schedule), "--findings", findings.string()};
    if (variant.ranks > 0) words.insert(words.end(), {"--ranks", std::to_string(variant.ranks)});
    words.insert(words.end(), {"--", (folder / "program").string()});
    const tools::Outcome ran = tools::Run(words, folder, kSeconds);
    Json all = Json::array();
    const Json json = Json::parse(tools::ReadText(findings), nullptr, false);
    if (json.is_object() && json.contains("findings")) {
      for (const Json& finding : json["findings"]) {
        const std::string kind = finding.value("kind", "");
        if (kind != "portability" && kind != "leak") all.push_back(finding);
      }
    }
    if (ran.late) {
      *wrong = fmt::format("schedule {}: takes too long", schedule);
    } else if (ran.code != 0 && ran.code != 87) {
      *wrong = fmt::format("schedule {}: ends with {}", schedule, ran.code);
    }
    return all;
  }

  const Choice& choice_;
  mutable std::mutex mutex_;
};

int Main(const Choice& choice) {
  std::vector<Variant> variants;
  for (const std::string& source : choice.sources) {
    std::vector<fs::path> files;
    if (fs::is_directory(source)) {
      for (const auto& entry : fs::directory_iterator(source))
        if (entry.path().extension() == ".cu") files.push_back(entry.path());
    } else {
      files.emplace_back(source);
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files)
      for (Variant& variant : VariantsOf(file)) variants.push_back(std::move(variant));
  }
  // "p06" is all of p06_*, "p06:3" one of them.
  std::erase_if(variants, [&](const Variant& one) {
    return !choice.only.empty() &&
           std::none_of(choice.only.begin(), choice.only.end(), [&](const std::string& name) {
             const std::size_t colon = name.find(':');
             return one.Name().starts_with(name.substr(0, colon)) &&
                    (colon == std::string::npos || one.Name().ends_with(name.substr(colon)));
           });
  });
  const tools::Scratch scratch("remedies");
  const Bench bench(choice);
  std::vector<Result1> results(variants.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int i = 0; i < choice.jobs; ++i) {
    threads.emplace_back([&] {
      for (std::size_t k; (k = next++) < variants.size();) {
        const fs::path folder = scratch.path() / std::to_string(k);
        fs::create_directories(folder);
        results[k] = bench.Try(variants[k], folder);
        if (!choice.folder.empty()) {
          fs::create_directories(choice.folder);
          std::error_code error;
          fs::copy_file(folder / variants[k].source.filename(),
                        fs::path(choice.folder) / fmt::format("{}.cu", variants[k].Name()),
                        fs::copy_options::overwrite_existing, error);
        }
        fs::remove_all(folder);
        const std::lock_guard lock(mutex);
        fmt::print("{:<28} {:<14} {:<12} {:>2} {}\n", variants[k].Name(), variants[k].kind,
                   results[k].word, results[k].findings, results[k].text);
        std::fflush(stdout);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::map<std::string, std::size_t> words;
  std::vector<std::size_t> counts;
  for (const Result1& result : results) {
    ++words[result.word];
    if (result.findings > 0) counts.push_back(result.findings);
  }
  std::sort(counts.begin(), counts.end());
  fmt::print("\n");
  for (const auto& [word, count] : words) fmt::print("{:<12} {}\n", word, count);
  const std::size_t tried =
      words["cured"] + words["cured_later"] + words["not_cured"] + words["not_applied"];
  if (tried > 0)
    fmt::print("cured of those with an edit: {:.1f} %\n",
               100.0 * static_cast<double>(words["cured"]) / static_cast<double>(tried));
  if (!counts.empty())
    fmt::print("findings of a bug: median {}, worst {}\n", counts[counts.size() / 2],
               counts.back());
  return 0;
}

}  // namespace
}  // namespace allranks::remedies

int main(int argc, char** argv) {
  allranks::remedies::Choice choice;
  CLI::App app("Applies remedies to programs that are wrong on purpose.", "remedies");
  app.add_option("sources", choice.sources, "Programs, or folders of them")->required();
  app.add_option("--command", choice.command, "The allranks command");
  app.add_option("--only", choice.only, "Those whose names begin so, or NAME:BUG");
  app.add_option("--schedules", choice.schedules, "Schedules 0 to N")->check(CLI::Range(0, 10'000));
  app.add_option("--keep", choice.folder, "Keep the changed sources there");
  app.add_option("-j,--jobs", choice.jobs, "At a time")->check(CLI::Range(1, 256));
  app.add_flag("-v,--verbose", choice.verbose, "Print the first finding of each as JSON");
  CLI11_PARSE(app, argc, argv);
  return allranks::remedies::Main(choice);
}
