// See large.h. The case is added to a copy of the problem.
#include "judging/large.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "common/run.h"
#include "judging/command.h"

namespace allranks::tools {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kSeconds = 600, kRanks = 8;
constexpr std::int64_t kMegabyte = 1 << 20;

// The process and all that descend from it, as far as they live while this looks.
std::vector<fs::path> TreeOf(pid_t root) {
  std::vector<fs::path> tree = {fs::path("/proc") / std::to_string(root)};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    std::error_code gone;
    for (fs::directory_iterator task(tree[i] / "task", gone), end; !gone && task != end;
         task.increment(gone)) {
      std::istringstream children(ReadText(task->path() / "children"));
      for (std::string child; children >> child;) tree.push_back(fs::path("/proc") / child);
    }
  }
  return tree;
}

// Memory that the processes share counts once.
double GigabytesOf(const std::vector<fs::path>& processes) {
  double kilobytes = 0;
  for (const fs::path& process : processes) {
    std::istringstream lines(ReadText(process / "smaps_rollup"));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("Pss:")) kilobytes += std::stod(line.substr(4));
  }
  return kilobytes * 1024 / 1e9;
}

struct Judged {
  Json json;
  double gigabytes = 0;  // at most, as far as looks in intervals show
};

Judged Judge(const fs::path& problem, const fs::path& solution, const std::string& name,
             const fs::path& folder, const std::vector<std::string>& more) {
  std::vector<std::string> options = {"--case", name};
  options.insert(options.end(), more.begin(), more.end());
  const Running running = Start(JudgeCommand(problem, solution, options), folder / "large");
  Judged judged;
  {
    const std::jthread watch([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        judged.gigabytes = std::max(judged.gigabytes, GigabytesOf(TreeOf(running.pid)));
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
    });
    judged.json = Json::parse(End(running, kSeconds).out, nullptr, false);
  }
  CHECK(!judged.json.is_discarded(), "no JSON of {}", solution.string());
  return judged;
}

}  // namespace

int Large(const fs::path& folder, int megabytes, const LargeLimits& limits) {
  const fs::path problem = folder / "collective" / "allreduce_two_shot";
  fs::create_directories(problem.parent_path());
  fs::copy(fs::path(ALLRANKS_SOURCE_DIR) / "problems/collective/allreduce_two_shot", problem,
           fs::copy_options::recursive);
  const std::int64_t count = megabytes * kMegabyte / static_cast<std::int64_t>(sizeof(float));
  std::string toml = ReadText(problem / "problem.toml");
  const std::string cases = "[cases]\n";
  const std::size_t at = toml.find(cases);
  CHECK(at != std::string::npos, "no cases");
  toml.insert(at + cases.size(), fmt::format("large = {{ world = {}, n = {} }}\n", kRanks, count));
  std::ofstream(problem / "problem.toml") << toml;
  const std::string name = fmt::format("large.w{}.n{}", kRanks, count);

  fmt::print("{} MB per rank, {} ranks, two calls\n", megabytes, kRanks);
  fmt::print("{:<20} {:<13} {:>7} {:>7} {:>9} {:>9} {:>12} {:>9}\n", "candidate", "verdict",
             "CPU s", "wall s", "G instr/s", "memory GB", "modelled us", "roofline");
  bool good = true;
  const auto judge = [&](const char* what, const fs::path& solution,
                         const std::vector<std::string>& more) {
    Judged judged = Judge(problem, solution, name, folder, more);
    const Json& one = judged.json["cases"][0];
    const Json& cost = judged.json["cost"];
    const auto number = [](const Json& json) { return json.is_number() ? json.get<double>() : 0; };
    fmt::print(
        "{:<20} {:<13} {:>7.1f} {:>7.1f} {:>9.2f} {:>9.2f} {:>12.1f} {:>7.1f} %\n", what,
        judged.json["verdict"].get<std::string>(), number(cost["cpu_s"]), number(cost["wall_s"]),
        number(one["thread_instructions"]) / number(cost["node_cpu_s"]) / 1e9, judged.gigabytes,
        number(one["call_ns"]) / 1e3, 100 * number(one["roofline_fraction"]));
    return judged;
  };
  const fs::path flags = problem / "alternates" / "flags.cu";
  const Judged checked = judge("by flags", flags, {});
  const Judged plain = judge("without the checker", flags, {"--no-check"});
  std::string text = ReadText(flags);
  const std::string release = "st.release.sys";
  const std::size_t place = text.find(release);
  CHECK(place != std::string::npos, "the solution by flags has no release");
  text.replace(place, release.size(), "st.relaxed.sys");
  std::ofstream(folder / "unreleased.cu") << text;
  const Judged unreleased = judge("unreleased", folder / "unreleased.cu", {});
  const auto expect = [&](bool holds, const std::string& what) {
    if (!holds) fmt::print("does not hold: {}\n", what);
    good = good && holds;
  };
  expect(checked.json["pass"].get<bool>() && plain.json["pass"].get<bool>(),
         "the solution by flags passes");
  const auto time = [](const Judged& judged) { return judged.json["cases"][0]["call_ns"]; };
  expect(time(checked) == time(plain), "the checker does not change times");
  // Its data is weak, so that pages which were drawn show it.
  expect(unreleased.json["verdict"] == "race", "a missing release is a race");
  if (limits.seconds != 0)
    expect(checked.json["cost"]["cpu_s"].get<double>() <= limits.seconds,
           fmt::format("at most {} CPU seconds", limits.seconds));
  if (limits.gigabytes != 0)
    expect(checked.gigabytes <= limits.gigabytes, fmt::format("at most {} GB", limits.gigabytes));
  return good ? 0 : 1;
}

}  // namespace allranks::tools
