// `protocols`: runs the programs of tests/protocols under the checker and counts what it finds.
//
// A broken variant must be found: a finding that counts, a failure of the program or a deadlock,
// under schedule 0 or one of the next few (--schedules). A correct one must have none of these
// under many (--correct). Which schedule found what first is kept, drawn and directed apart.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/build.h"
#include "common/document.h"
#include "common/run.h"
#include "common/spread.h"
#include "protocols/corpus.h"

namespace allranks::protocols {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kBuildSeconds = 900, kRunSeconds = 900;
constexpr std::uint64_t kDirected = 1'000'000;  // schedules from here on are directed

struct Result {
  const Protocol* protocol = nullptr;
  const Variant* variant = nullptr;
  bool found = false, broke = false;  // broke: it could not be run
  std::string how;                    // "race (4 findings)", "exit 1", "deadlock"
  std::uint64_t schedule = 0;         // that showed it first
  std::size_t findings = 0;
  double seconds = 0;

  bool right() const {
    return !broke &&
           (variant->open() || (variant->missed && !found) || found != variant->correct());
  }
  std::string name() const {
    return fmt::format("{}/{}:{}", protocol->folder, protocol->name, variant->number);
  }
};

struct Options {
  std::vector<fs::path> paths;
  int schedules = 20, correct = 20;
  int jobs = 0;
  std::size_t every = 1, first = 0;
  bool write = false, list = false;
  fs::path folder;
};

// The binary of a group; empty: it did not compile.
fs::path Build(const std::vector<const Protocol*>& group, const fs::path& folder) {
  const std::string text = Joined(group);
  tools::Hash hash;
  hash.Add(text);
  hash.Add(tools::ReadText(fs::path(ALLRANKS_SOURCE_DIR) / "tests/protocols/common.h"));
  const fs::path binary = folder / hash.Text();
  if (fs::exists(binary)) return binary;
  const fs::path source = binary.string() + ".cu";
  std::ofstream(source) << text;
  const fs::path made = binary.string() + ".new";
  const tools::Outcome built =
      tools::End(tools::Start({ALLRANKS_NVCC, "-std=c++20", "-cudart", "shared", "-lineinfo",
                               "-gencode=arch=compute_90,code=compute_90", "-w",
                               std::string("-I") + ALLRANKS_SOURCE_DIR + "/tests/protocols", "-o",
                               made, source, "-lcuda", "-lpthread"},
                              binary),
                 kBuildSeconds);
  if (built.code != 0) {
    fmt::print(stderr, "nvcc failed for {} and others of its group:\n{}\n", group.front()->name,
               built.err.substr(0, 3000));
    return {};
  }
  fs::rename(made, binary);
  return binary;
}

// One command; true: something was found.
bool Try(const fs::path& binary, int schedules, const fs::path& files, Result& result) {
  const Protocol& protocol = *result.protocol;
  const fs::path findings = files.string() + ".json";
  std::error_code ignored;
  fs::remove(findings, ignored);
  std::vector<std::string> command = {ALLRANKS_COMMAND, "exec", "--check", "--findings", findings};
  if (schedules > 0) {
    command.insert(command.end(), {"--schedules", std::to_string(schedules), "--jobs", "1"});
  }
  if (protocol.ranks > 0)
    command.insert(command.end(), {"--ranks", std::to_string(protocol.ranks)});
  command.insert(command.end(), {"--", binary, result.name()});
  command.insert(command.end(), protocol.arguments.begin(), protocol.arguments.end());
  const tools::Outcome ran = tools::End(tools::Start(command, files), kRunSeconds);
  result.seconds += ran.seconds;
  if (ran.late || ran.code == 70 || ran.code == 2 || ran.code >= 126) {
    result.broke = !(ran.code >= 128 && !ran.late);
    result.how =
        ran.late ? "it did not end" : fmt::format("exit {}: {}", ran.code, ran.err.substr(0, 200));
    if (result.broke) return true;
  }
  const json report = json::parse(tools::ReadText(findings), nullptr, false);
  if (report.is_object()) {
    std::map<std::string, int> kinds;
    for (const json& finding : report["findings"]) {
      if (!finding["counts"].get<bool>()) continue;
      if (result.findings++ == 0) result.schedule = finding["schedule"].get<std::uint64_t>();
      ++kinds[finding["kind"].get<std::string>()];
    }
    for (const auto& [kind, count] : kinds)
      result.how += fmt::format("{}{} {}", result.how.empty() ? "" : ", ", count, kind);
    if (result.findings == 0 && ran.code != 0 && !report["failures"].empty())
      result.schedule = report["failures"][0]["schedule"].get<std::uint64_t>();
  }
  if (ran.code == 86) result.how += result.how.empty() ? "deadlock" : ", deadlock";
  if (ran.code != 0 && ran.code != 86 && ran.code != 87)
    result.how += fmt::format("{}exit {}", result.how.empty() ? "" : ", ", ran.code);
  result.found = ran.code != 0 || result.findings != 0;
  return result.found;
}

void Check(const fs::path& binary, const Options& options, const fs::path& files, Result& result) {
  if (binary.empty()) {
    result.broke = true;
    result.how = "it does not compile";
    return;
  }
  const bool correct = result.variant->correct();
  if (!correct && Try(binary, 0, files, result)) return;
  Try(binary, correct ? options.correct : options.schedules, files, result);
}

std::string Table(const std::vector<Result>& results, const Options& options) {
  struct Row {
    std::size_t broken = 0, plain = 0, drawn = 0, directed = 0, missed = 0, correct = 0, alarms = 0;
  };
  std::map<std::string, Row> rows;
  for (const Result& result : results) {
    const std::string& folder = result.protocol->folder;
    for (const std::string& name : {folder, std::string("~all")}) {
      Row& row = rows[name];
      if (result.variant->open()) continue;
      if (result.variant->correct()) {
        ++row.correct;
        row.alarms += result.right() ? 0 : 1;
        continue;
      }
      ++row.broken;
      if (!result.found)
        ++row.missed;
      else if (result.schedule == 0)
        ++row.plain;
      else if (result.schedule < kDirected)
        ++row.drawn;
      else
        ++row.directed;
    }
  }
  std::string text = fmt::format(
      "As of {}: broken variants under at most {} schedules beside schedule 0, correct ones under "
      "{}.\n\n| programs | broken | found under schedule 0 | first by a drawn one | first by a "
      "directed one | missed | correct | false alarms "
      "|\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
      tools::Today(), options.schedules, options.correct);
  for (const auto& [name, row] : rows)
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n",
                        name == "~all" ? "**all**" : fmt::format("`{}`", name), row.broken,
                        row.plain, row.drawn, row.directed, row.missed, row.correct, row.alarms);
  return text;
}

int Run(const Options& options) {
  const std::vector<Protocol> found = Find(options.paths);
  std::vector<Protocol> protocols;
  for (std::size_t i = options.first; i < found.size(); i += options.every)
    protocols.push_back(found[i]);
  const auto groups = Groups(protocols);
  const int jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(std::thread::hardware_concurrency());
  fs::create_directories(options.folder);
  std::vector<fs::path> binaries(groups.size());
  tools::Spread(jobs, groups.size(),
                [&](std::size_t i) { binaries[i] = Build(groups[i], options.folder); });
  // One that does not compile must not take the others with it.
  std::map<const Protocol*, fs::path> binary_of;
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (const Protocol* protocol : groups[i])
      binary_of[protocol] = binaries[i].empty() ? Build({protocol}, options.folder) : binaries[i];
  std::vector<Result> results;
  for (const Protocol& protocol : protocols)
    for (const Variant& variant : protocol.variants) {
      Result& result = results.emplace_back();
      result.protocol = &protocol;
      result.variant = &variant;
    }
  const tools::Scratch scratch("protocols");
  std::mutex mutex;
  tools::Spread(jobs, results.size(), [&](std::size_t i) {
    Result& result = results[i];
    Check(binary_of[result.protocol], options, scratch.path() / std::to_string(i), result);
    const std::scoped_lock lock(mutex);
    if (!options.list && result.right()) return;
    fmt::print("{} {:<28} {:<18} {:<30} {} {:.1f} s\n", result.right() ? "   " : "###",
               result.name(), result.variant->kinds, result.how.empty() ? "nothing" : result.how,
               result.found ? fmt::format("schedule {}", result.schedule) : "", result.seconds);
    std::fflush(stdout);
  });
  std::size_t wrong = 0, broke = 0;
  double seconds = 0;
  for (const Result& result : results) {
    wrong += result.right() ? 0 : 1;
    broke += result.broke ? 1 : 0;
    seconds += result.seconds;
  }
  const std::string table = Table(results, options);
  fmt::print("\n{}\n{} variants of {} protocols, {} not as expected, {:.0f} CPU s\n", table,
             results.size(), protocols.size(), wrong, seconds);
  if (options.write && broke != 0) {
    fmt::print(stderr, "{} variants could not be run: the table is not written\n", broke);
    return 2;
  }
  if (options.write) {
    const auto put = tools::PutBetween("<!-- protocols: written by `protocols --write` -->\n",
                                       "<!-- protocols: end -->", table,
                                       fs::path(ALLRANKS_SOURCE_DIR) / "docs/checker.md", true);
    if (!put) {
      fmt::print(stderr, "{}\n", put.error().message);
      return 2;
    }
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace allranks::protocols

int main(int argc, char** argv) {
  allranks::protocols::Options options;
  CLI::App app("Runs protocol programs, correct and broken, under the checker");
  app.add_option("PATH", options.paths, "Files and folders [tests/protocols]");
  app.add_option("--schedules", options.schedules,
                 "Schedules of broken variants, in addition to schedule 0");
  app.add_option("--correct", options.correct,
                 "Schedules of correct variants, in addition to schedule 0");
  app.add_option("-j,--jobs", options.jobs, "Number of concurrent runs");
  app.add_option("--every", options.every, "Only every N-th protocol")->check(CLI::PositiveNumber);
  app.add_option("--first", options.first, "With --every: index of the first protocol, from 0");
  app.add_option("--folder", options.folder, "Folder for the binaries");
  app.add_flag("--list", options.list, "Print a line for every variant, not only for failures");
  app.add_flag("--write", options.write, "Write the table of docs/checker.md");
  CLI11_PARSE(app, argc, argv);
  if (options.paths.empty()) options.paths = {ALLRANKS_SOURCE_DIR "/tests/protocols"};
  if (options.folder.empty()) options.folder = ALLRANKS_PROTOCOLS_FOLDER;
  return allranks::protocols::Run(options);
}
