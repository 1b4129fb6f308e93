// What is claimed of judging, shown: `judging exact` (the same candidate and seed give the same
// JSON, alone, beside load and side by side), `judging cost` (CPU seconds against the bare
// compiler), `judging drain` (calls back to back find what draining hides), `judging order` (drawn
// cases last change nothing but the order), `judging jobs` (-j changes nothing but the cost),
// `judging band` (ratios on perturbed profiles are exact), `judging large` (large.h). Each runs the
// `allranks` command as a user would, and fails if the claim does not hold.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "common/run.h"
#include "judging/command.h"
#include "judging/large.h"
#include "problem/controls.h"
#include "problem/problem.h"
#include "problem/source.h"

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using allranks::Result;
namespace tools = allranks::tools;
using tools::JudgeCommand;
using tools::Outcome;

const fs::path kProblems = fs::path(ALLRANKS_SOURCE_DIR) / "problems";
constexpr int kBuildsAtOnce = 4;
constexpr int kSeconds = 3600;  // judges have limits of their own

Outcome Run(const std::vector<std::string>& command, const fs::path& folder) {
  return tools::Run(command, folder, kSeconds);
}

Json Parse(const Outcome& finished) {
  Json json = Json::parse(finished.out, nullptr, false);
  if (json.is_discarded()) {
    fmt::print(stderr, "no JSON (exit {}): {}{}\n", finished.code, finished.out, finished.err);
    std::exit(1);
  }
  return json;
}

// All that must repeat.
std::string Essence(const Outcome& finished) {
  Json json = Parse(finished);
  json.erase("cost");
  return json.dump();
}

// The folder of a problem; empty: there is none.
fs::path FolderOf(const std::string& slug) {
  for (const fs::path& one : allranks::problem::Find(kProblems))
    if (one.filename() == slug) return one;
  return {};
}

// The controls of the problem in `home`, written to files in `folder`.
std::vector<fs::path> Controls(const fs::path& home, const fs::path& folder) {
  const auto problem = allranks::problem::Load(home);
  CHECK(problem.has_value(), "the problem cannot be read");
  std::vector<fs::path> files;
  for (const auto& control : allranks::problem::ControlsOf(*problem)) {
    files.push_back(folder / fmt::format("{}_{}.cu", problem->slug, control.name));
    std::ofstream(files.back()) << control.region;
  }
  return files;
}

int Exact(const fs::path& folder, int runs, int beside, const std::string& slug,
          const std::vector<std::string>& options) {
  const fs::path problem = FolderOf(slug);
  if (problem.empty()) {
    fmt::print(stderr, "no problem {}\n", slug);
    return 2;
  }
  int failures = 0;
  const auto command = JudgeCommand(problem, problem / "reference.cu", options);
  const std::string first = Essence(Run(command, folder));
  for (const bool loaded : {false, true}) {
    const tools::Load load(loaded ? 3 : 0);
    int different = 0;
    for (int run = 0; run < runs; ++run)
      different += Essence(Run(command, folder)) == first ? 0 : 1;
    fmt::print("{}: {} of {} runs {} differ from the first\n", slug, different, runs,
               loaded ? "beside three busy processes" : "alone");
    failures += different;
  }
  // Different candidates side by side: good ones and bad ones, over all problems.
  std::vector<std::vector<std::string>> commands;
  for (const fs::path& one : allranks::problem::Find(kProblems)) {
    commands.push_back(JudgeCommand(one, one / "reference.cu", options));
    const std::vector<fs::path> controls = Controls(one, folder);
    if (!controls.empty()) commands.push_back(JudgeCommand(one, controls.front(), options));
  }
  std::vector<std::string> alone;
  for (int i = 0; i < beside; ++i) {
    const auto at = static_cast<std::size_t>(i) % commands.size();
    alone.push_back(Essence(Run(commands[at], folder)));
  }
  std::vector<tools::Running> running;
  for (int i = 0; i < beside; ++i)
    running.push_back(tools::Start(commands[static_cast<std::size_t>(i) % commands.size()],
                                   folder / std::to_string(i)));
  int different = 0;
  std::map<std::string, int> verdicts;
  for (std::size_t i = 0; i < running.size(); ++i) {
    const Outcome finished = tools::End(running[i], kSeconds);
    ++verdicts[Parse(finished)["verdict"].get<std::string>()];
    different += Essence(finished) == alone[i] ? 0 : 1;
  }
  // The same candidate several times at once, with nothing built before: each builds it.
  setenv("ALLRANKS_CACHE", (folder / "fresh").c_str(), 1);
  running.clear();
  for (int i = 0; i < kBuildsAtOnce; ++i)
    running.push_back(tools::Start(command, folder / fmt::format("same{}", i)));
  for (tools::Running& one : running)
    different += Essence(tools::End(one, kSeconds)) == first ? 0 : 1;
  fmt::print("{} judgements side by side: {} differ from those alone (", beside + kBuildsAtOnce,
             different);
  for (const auto& [verdict, count] : verdicts) fmt::print(" {} {}", count, verdict);
  fmt::print(" )\n");
  return failures + different == 0 ? 0 : 1;
}

// Windows side by side (-j) change nothing: candidates that pass, and that fail in all worlds or in
// one of them.
int Jobs(const fs::path& folder, const std::string& slug) {
  const fs::path problem = FolderOf(slug);
  std::vector<fs::path> candidates = Controls(problem, folder);
  candidates.insert(candidates.end(), {problem / "reference.cu", problem / "baseline.cu"});
  int compared = 0, different = 0;
  std::map<std::string, int> verdicts;
  for (const fs::path& candidate : candidates) {
    for (const char* more : {"--drawn-last", "--keep-going"}) {
      const auto judge = [&](const char* jobs) {
        return Run(JudgeCommand(problem, candidate, {"-j", jobs, more}), folder);
      };
      const Outcome alone = judge("1");
      ++verdicts[Parse(alone)["verdict"].get<std::string>()];
      ++compared;
      if (Essence(judge("4")) == Essence(alone)) continue;
      ++different;
      fmt::print("{} {}: -j 4 differs from -j 1\n", candidate.filename().string(), more);
    }
  }
  fmt::print("{} judgements with -j 4: {} differ from those with -j 1 (", compared, different);
  for (const auto& [verdict, count] : verdicts) fmt::print(" {} {}", count, verdict);
  fmt::print(" )\n");
  return compared > 0 && different == 0 ? 0 : 1;
}

// The bare command that compiles a candidate; its CPU seconds.
double Compile(const fs::path& problem, const fs::path& folder) {
  const fs::path work = folder / "bare";
  fs::create_directories(work);
  const Outcome header =
      Run({ALLRANKS_COMMAND, "problems", "show", problem.string(), "--header"}, folder);
  std::ofstream(work / "problem.h") << header.out;
  const auto description = allranks::problem::Load(problem);
  CHECK(description.has_value(), "the problem cannot be read");
  const auto solution = allranks::problem::SolutionOf(*description, "reference.cu");
  CHECK(solution.has_value(), "the problem has no reference");
  std::ofstream(work / "candidate.cu") << *solution;
  const Outcome compiled = Run(
      {"nvcc", "-std=c++17", "-O3", "-lineinfo", "-gencode=arch=compute_90,code=[sm_90,compute_90]",
       "-I", work.string(), "-I", std::string(ALLRANKS_SOURCE_DIR) + "/include", "-c",
       (work / "candidate.cu").string(), "-o", (work / "candidate.o").string()},
      folder);
  CHECK(compiled.code == 0, "nvcc failed");
  return compiled.seconds;
}

int CostOf(const fs::path& folder, int repeat, double limit, const std::string& only) {
  fmt::print("{:<24} {:>7} {:>8} {:>7} {:>9} {:>7} {:>7} {:>7}\n", "problem", "nvcc s", "judged s",
             "ratio", "compiler", "ranks", "node", "judge");
  std::vector<double> all;
  double one_shot = 0;
  for (const fs::path& problem : allranks::problem::Find(kProblems)) {
    if (!only.empty() && problem.filename() != only) continue;
    double bare = 1e9;
    Json best;
    // Goals are of solutions that announce data by flags. Polling for the data itself costs the
    // node several times as much (docs/performance.md).
    const fs::path by_flags = problem / "alternates/flags.cu";
    const fs::path solution = fs::exists(by_flags) ? by_flags : problem / "reference.cu";
    // A machine that others use makes both slower, and not alike: what only that explains gets more
    // runs.
    const auto over = [&] {
      return problem.filename() == "allreduce_one_shot" &&
             best["cpu_s"].get<double>() > limit * bare;
    };
    for (int run = 0; run < repeat || (run < 4 * repeat && over()); ++run) {
      bare = std::min(bare, Compile(problem, folder));
      const Outcome finished = Run(JudgeCommand(problem, solution, {"--no-cache"}), folder);
      const Json cost = Parse(finished)["cost"];
      all.push_back(cost["cpu_s"].get<double>());
      if (best.is_null() || cost["cpu_s"] < best["cpu_s"]) best = cost;
    }
    const double cpu = best["cpu_s"].get<double>();
    const std::string slug = problem.filename().string();
    if (slug == "allreduce_one_shot") one_shot = cpu / bare;
    fmt::print("{:<24} {:>7.2f} {:>8.2f} {:>7.2f} {:>9.2f} {:>7.2f} {:>7.2f} {:>7.2f}\n", slug,
               bare, cpu, cpu / bare, best["compile_cpu_s"].get<double>(),
               best["ranks_cpu_s"].get<double>(), best["node_cpu_s"].get<double>(),
               best["judge_cpu_s"].get<double>());
  }
  std::sort(all.begin(), all.end());
  const auto at = [&](double part) {
    return all[std::min(all.size() - 1,
                        static_cast<std::size_t>(part * static_cast<double>(all.size())))];
  };
  fmt::print("CPU seconds of a judgement, {} of them: p50 {:.2f}, p99 {:.2f}\n", all.size(),
             at(0.5), at(0.99));
  fmt::print("allreduce_one_shot: {:.2f} times the bare compiler (at most {})\n", one_shot, limit);
  return one_shot > 0 && one_shot <= limit ? 0 : 1;
}

// Bugs of synchronisation between calls: they must be found back to back. With a drain after each
// call most of them cannot show; the table says how many do.
struct Variant {
  const char* problem;
  const char* mutant;
  const char* what;
};
constexpr Variant kVariants[] = {
    {"allreduce_one_shot", "flags.one_buffer_backoff", "one staging buffer"},
    {"allreduce_one_shot", "flags.equal_backoff", "waits for == epoch"},
    {"allreduce_multimem", "one_shot_one_buffer", "one staging buffer"},
};

Result<std::string> MutantOf(const fs::path& folder, const std::string& name) {
  const auto problem = allranks::problem::Load(folder);
  if (!problem) return allranks::Fail(problem.error());
  for (const allranks::problem::Mutant& mutant : problem->mutants)
    if (mutant.name == name) return allranks::problem::MutantOf(*problem, mutant);
  return allranks::Fail("{} has no mutant {}", folder.string(), name);
}

int Drain(const fs::path& folder, int seeds) {
  int failures = 0;
  fmt::print("| problem | variant | drained after each call | back to back |\n|---|---|---|---|\n");
  for (const Variant& variant : kVariants) {
    const fs::path problem = kProblems / "collective" / variant.problem;
    const Result<std::string> source = MutantOf(problem, variant.mutant);
    if (!source) {
      fmt::print(stderr, "{}\n", source.error().message);
      return 1;
    }
    const fs::path file = folder / "variant.cu";
    std::ofstream(file) << *source;
    std::string cells[2];
    for (const bool drained : {true, false}) {
      std::uint64_t calls = 0, wrong = 0;
      std::map<std::string, int> verdicts;
      for (int seed = 1; seed <= seeds; ++seed) {
        auto command = JudgeCommand(problem, file, {"--keep-going"});
        command[6] = std::to_string(seed);  // the value of --seed
        if (drained) command.emplace_back("--drain");
        const Json json = Parse(Run(command, folder));
        ++verdicts[json["verdict"].get<std::string>()];
        for (const Json& one : json["cases"]) {
          calls += one["calls"].get<std::uint64_t>();
          wrong += one["wrong_calls"].get<std::uint64_t>();
        }
      }
      std::string& cell = cells[drained ? 0 : 1];
      for (const auto& [verdict, count] : verdicts)
        cell += fmt::format("{}{} {} of {}", cell.empty() ? "" : ", ", verdict, count, seeds);
      cell += fmt::format("; {} of {} calls wrong", wrong, calls);
      failures += verdicts["pass"] == (drained ? seeds : 0) ? 0 : 1;
    }
    fmt::print("| {} | {} | {} | {} |\n", variant.problem, variant.what, cells[0], cells[1]);
  }
  return failures == 0 ? 0 : 1;
}

// A candidate that passes and one that does not, in both orders: the same figures of every case.
int Order(const fs::path& folder, const std::string& slug, const std::string& mutant) {
  const fs::path problem = FolderOf(slug);
  const Result<std::string> broken = MutantOf(problem, mutant);
  if (!broken) {
    fmt::print(stderr, "{}\n", broken.error().message);
    return 1;
  }
  const fs::path file = folder / "mutant.cu", seed = folder / "seed";
  std::ofstream(file) << *broken;
  std::ofstream(seed) << "judging\n";
  int failures = 0;
  for (const fs::path& solution : {problem / "reference.cu", file}) {
    auto command = JudgeCommand(problem, solution, {"--keep-going"});
    const Json usual = Parse(Run(command, folder));
    command[5] = "--seed-file";
    command[6] = seed.string();
    command.emplace_back("--drawn-last");
    const Json late = Parse(Run(command, folder));
    std::map<std::string, Json> cases[2];
    int after_drawn = 0;  // cases that come after a drawn one and are none
    bool drawn = false;
    for (const Json& one : usual["cases"]) cases[0][one["name"]] = one;
    for (const Json& one : late["cases"]) {
      cases[1][one["name"]] = one;
      drawn = drawn || one["kind"] == "drawn";
      after_drawn += drawn && one["kind"] != "drawn" ? 1 : 0;
    }
    int different = 0;
    for (const auto& [name, one] : cases[0]) different += cases[1][name] == one ? 0 : 1;
    const bool same = usual["verdict"] == late["verdict"] && usual["score"] == late["score"] &&
                      usual["seed"] == late["seed"] && cases[0].size() == cases[1].size();
    fmt::print("{}: {}; {} of {} cases differ, {} come after drawn ones\n",
               solution.filename().string(), usual["verdict"].get<std::string>(), different,
               cases[0].size(), after_drawn);
    failures += same && drawn && different + after_drawn == 0 ? 0 : 1;
    failures += usual["pass"] == (solution != file) ? 0 : 1;
  }
  return failures == 0 ? 0 : 1;
}

// Ratios on perturbed profiles: the reference's to itself are 1, with and without what is kept, and
// a baseline that is slower by far is slower on each of them. Without a reference there are none.
int BandOf(const fs::path& folder, const std::string& slug, int profiles) {
  int failures = 0;
  const fs::path problem = kProblems / "p2p" / slug;
  const auto ratios = [&](const char* solution, std::vector<std::string> options) {
    options.insert(options.end(), {"--band", std::to_string(profiles)});
    const Json json = Parse(Run(JudgeCommand(problem, problem / solution, options), folder));
    if (!json["pass"].get<bool>() || json["band"].is_null() ||
        json["band"]["profiles"] != profiles) {
      fmt::print("{}: no band: {}\n", solution, json.dump());
      ++failures;
      return std::vector<double>();
    }
    const auto band = json["band"]["speedup_vs_reference"].get<std::vector<double>>();
    fmt::print("{}: {} ({:.2f} CPU s)\n", solution, fmt::join(band, " "),
               json["cost"]["band_cpu_s"].get<double>());
    return band;
  };
  const std::vector<double> ones(static_cast<std::size_t>(profiles), 1.0);
  failures += ratios("reference.cu", {"--no-cache"}) == ones ? 0 : 1;
  const auto slower = ratios("baseline.cu", {});
  failures += slower == ratios("baseline.cu", {}) ? 0 : 1;
  failures += ratios("reference.cu", {}) == ones ? 0 : 1;
  for (const double ratio : slower) failures += ratio > 0 && ratio < 1 ? 0 : 1;
  // They are different machines.
  failures += std::set<double>(slower.begin(), slower.end()).size() == ones.size() ? 0 : 1;

  const fs::path sealed = folder / "p2p" / slug;
  fs::create_directories(sealed.parent_path());
  fs::copy(problem, sealed, fs::copy_options::recursive);
  fs::remove(sealed / "reference.cu");
  const Json json = Parse(Run(
      JudgeCommand(sealed, sealed / "baseline.cu", {"--band", std::to_string(profiles)}), folder));
  const bool none = json["pass"].get<bool>() && json["band"].is_null();
  fmt::print("without a reference: {}\n", json["band"].dump());
  failures += none ? 0 : 1;
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Verifies the claims about judging.", "judging");
  app.require_subcommand(1);
  int runs = 20, beside = 16, repeat = 5;
  double limit = 3;
  std::string slug = "allreduce_one_shot";
  std::vector<std::string> options;
  CLI::App* exact =
      app.add_subcommand("exact", "Check that the same candidate and seed give the same JSON");
  exact->add_option("--runs", runs, "Number of runs, without load and again with load");
  exact->add_option("--beside", beside, "Number of concurrent judgements");
  exact->add_option("--problem", slug);
  exact->add_option("--option", options, "Option for `allranks judge`");
  CLI::App* cost =
      app.add_subcommand("cost", "Compare the CPU time with that of the compiler alone");
  cost->add_option(
      "--repeat", repeat,
      "Judgements of each problem; the fastest counts, and more are made above the limit");
  std::string only;
  cost->add_option("--problem", only, "Only this problem");
  cost->add_option("--limit", limit, "Maximum ratio to the compiler for allreduce_one_shot");
  int seeds = 6;
  CLI::App* drain =
      app.add_subcommand("drain", "Compare calls back to back with calls that are drained");
  drain->add_option("--seeds", seeds, "Judgements of each variant and mode");
  CLI::App* order =
      app.add_subcommand("order", "Check that --drawn-last does not change the results");
  CLI::App* jobs = app.add_subcommand("jobs", "Check that -j does not change the results");
  CLI::App* band = app.add_subcommand("band", "Check that ratios on perturbed profiles are exact");
  CLI::App* large = app.add_subcommand("large", "Show what a large case takes");
  int megabytes = 16;
  tools::LargeLimits limits;
  large->add_option("--megabytes", megabytes, "Message of a rank")->check(CLI::Range(4, 64));
  large->add_option("--most-seconds", limits.seconds, "Most CPU time of a judgement");
  large->add_option("--most-gigabytes", limits.gigabytes, "Most memory of its processes");
  CLI11_PARSE(app, argc, argv);

  const tools::Scratch scratch("judging");
  const fs::path& folder = scratch.path();
  if (large->parsed()) return tools::Large(folder, megabytes, limits);
  if (drain->parsed()) return Drain(folder, seeds);
  if (exact->parsed()) return Exact(folder, runs, beside, slug, options);
  if (band->parsed()) return BandOf(folder, "flag_pingpong", 3);
  if (jobs->parsed()) return Jobs(folder, "allreduce_one_shot");
  if (order->parsed()) return Order(folder, "allreduce_one_shot", "flags.tail_skipped");
  return CostOf(folder, repeat, limit, only);
}
