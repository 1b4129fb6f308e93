// `attacks`: judges every hostile candidate of tests/attacks and compares the verdict. Between
// groups an honest candidate is judged and must get what it got at first, word for word; at the end
// nothing may be left behind. --write and --check are for the table of docs/trust.md.
#include <fmt/format.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "attacks/corpus.h"
#include "common/document.h"
#include "common/run.h"
#include "common/spread.h"
#include "common/unchanged.h"
#include "problem/problem.h"

namespace allranks::attacks {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kJudgeSeconds = 900;  // of wall time: the machine may be busy
constexpr char kBegin[] = "<!-- attacks: written by `attacks --write` -->\n";
constexpr char kEnd[] = "<!-- attacks: end -->\n";

struct Outcome {
  std::string verdict;  // or what went wrong with the judge
  std::string drained;
  std::string text;
  nlohmann::json json;
  double seconds = 0;
};

class Runner {
 public:
  explicit Runner(fs::path folder) : folder_(std::move(folder)) {}

  Outcome Judge(const Attack& attack, bool drain = false) {
    const fs::path base = folder_ / fmt::format("{}-{}", attack.name, next_++);
    const std::string source = base.string() + ".cu";
    std::ofstream(source, std::ios::binary) << attack.text;
    const auto begun = Clock::now();
    Outcome outcome;
    std::vector<std::string> words = {ALLRANKS_COMMAND, "judge",  attack.problem, "--solution",
                                      source,           "--seed", "attacks",      "--json",
                                      "--rank-seconds", "6"};
    if (!attack.all_cases) words.push_back("--visible");
    // What may pass must not fail because the machine is busy; what may run out of time must do so
    // within what a judgement usually has.
    const auto may = [&](const char* verdict) {
      return std::find(attack.verdicts.begin(), attack.verdicts.end(), verdict) !=
             attack.verdicts.end();
    };
    if (attack.verdicts.empty() || (may("pass") && !may("timeout")))
      words.insert(words.end(), {"--cpu-seconds", "300"});
    if (drain) words.push_back("--drain");
    const tools::Outcome ran = tools::End(tools::Start(words, base), kJudgeSeconds);
    outcome.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    outcome.json = nlohmann::json::parse(ran.out, nullptr, false);
    if (ran.late) {
      outcome.verdict = "the judge did not end";
    } else if (!outcome.json.is_object() || !outcome.json.contains("verdict")) {
      outcome.verdict = "no verdict: " + ran.err.substr(0, 300);
    } else {
      outcome.verdict = outcome.json["verdict"].get<std::string>();
      outcome.text = outcome.json.value("text", "");
    }
    for (const char* end : {".cu", ".out", ".err"}) fs::remove(base.string() + end);
    return outcome;
  }

 private:
  fs::path folder_;
  std::atomic<int> next_{0};
};

// What must be the same every time: all but the cost.
nlohmann::json Repeatable(nlohmann::json json) {
  json.erase("cost");
  return json;
}

// Processes and control groups of sandboxes whose judge is gone, files in shared memory. Other
// judges may be at work on this machine.
std::vector<std::string> Leftovers() {
  std::vector<std::string> left;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::string command = tools::ReadText(entry.path() / "cmdline");
    if (!command.starts_with("/.launch")) continue;
    const std::string stat = tools::ReadText(entry.path() / "stat");
    const std::size_t name_end = stat.rfind(')');
    // Orphaned, and no zombie.
    if (name_end != std::string::npos && stat.find(" 1 ", name_end) == name_end + 3 &&
        stat[name_end + 2] != 'Z') {
      left.push_back("process " + entry.path().string());
    }
  }
  for (auto each = fs::recursive_directory_iterator(
           "/sys/fs/cgroup", fs::directory_options::skip_permission_denied, error);
       each != fs::recursive_directory_iterator(); each.increment(error)) {
    const std::string name = each->path().filename();
    if (!name.starts_with("allranks-")) continue;
    const std::string pid = name.substr(name.find('-', 9) + 1);  // allranks-NAMESPACE-PID-...
    if (!fs::exists("/proc/" + pid.substr(0, pid.find('-')))) left.push_back(each->path());
  }
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev/shm", error)) {
    if (entry.path().filename().string().find("allranks") != std::string::npos) {
      left.push_back(entry.path());
    }
  }
  return left;
}

std::string Joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string Table(const std::vector<Attack>& attacks) {
  std::string table = "| candidate | tries | stands for | verdict |\n|---|---|---|---|\n";
  for (const Attack& attack : attacks) {
    table += fmt::format("| `{}` | {} | {} | {} |\n", attack.name, attack.tries,
                         Joined(attack.rows, ", "), Joined(attack.verdicts, " or "));
  }
  table +=
      "\nThe same with a pause after each call, a test mode, in which only the pause saves "
      "them:\n\n";
  table += "| candidate | back to back | drained |\n|---|---|---|\n";
  for (const Attack& attack : attacks) {
    if (attack.drained.empty()) continue;
    table += fmt::format("| `{}` | {} | {} |\n", attack.name, Joined(attack.verdicts, " or "),
                         attack.drained);
  }
  return table;
}

// Scores of candidates that others are compared with, judged when first asked for.
class Scores {
 public:
  Scores(Runner& runner, const std::vector<Attack>& all) : runner_(runner), all_(all) {}

  // nullopt: it does not pass, or there is none of this name.
  std::optional<double> Of(const Attack& attack) {
    const std::lock_guard lock(mutex_);
    const auto key = std::pair(attack.problem, attack.at_most);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    Attack other;
    for (const Attack& one : all_)
      if (one.name == attack.at_most) other = one;
    if (attack.at_most == "reference") other.text = tools::ReadText(Reference(attack.problem));
    other.name = attack.at_most;
    other.problem = attack.problem;
    other.all_cases = true;
    std::optional<double>& score = known_[key];
    if (!other.text.empty()) {
      const Outcome outcome = runner_.Judge(other);
      if (outcome.verdict == "pass") score = outcome.json.value("score", 0.0);
    }
    return score;
  }

 private:
  static fs::path Reference(const std::string& problem) {
    for (const fs::path& folder : problem::Find(fs::path(ALLRANKS_SOURCE_DIR) / "problems"))
      if (folder.filename() == problem) return folder / "reference.cu";
    return {};
  }

  Runner& runner_;
  const std::vector<Attack>& all_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::optional<double>> known_;
};

struct Options {
  std::vector<std::string> only;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  std::size_t every = 1, first = 0;
  bool write = false, check = false, times = false;
  tools::Unchanged unchanged;
};

// Drops those that nothing has changed for.
Status LeaveOutUnchanged(tools::Unchanged* unchanged, const std::vector<Attack>& all,
                         std::vector<Attack>* attacks) {
  std::vector<Attack> left;
  for (Attack& attack : *attacks) {
    std::string about = attack.text;
    for (const Attack& other : all)
      if (other.name == attack.at_most) about += other.text;
    const Result<bool> out = unchanged->LeaveOut(attack.name, attack.problem, about);
    if (!out) return Fail(out.error());
    if (!*out) left.push_back(std::move(attack));
  }
  *attacks = std::move(left);
  return Ok();
}

// The number of things that went wrong.
int RunAll(Options& options, const std::vector<Attack>& all, const std::vector<Attack>& attacks,
           const fs::path& folder) {
  Runner runner(folder);
  int faults = 0;
  const auto fault = [&](const std::string& text) {
    ++faults;
    std::cout << "FAULT: " << text << std::endl;
  };
  Attack good;
  good.name = "honest";
  good.text = tools::ReadText(fs::path(ALLRANKS_SOURCE_DIR) / "tests/attacks/honest.inc") +
              "extern \"C\" void launch(const Args& args, cudaStream_t stream) { Honest(args, "
              "stream); }\n";
  const Outcome first = runner.Judge(good);
  if (first.verdict != "pass") {
    fault(fmt::format("an honest candidate gets {}: {}", first.verdict, first.text));
    return faults;
  }

  Scores scores(runner, all);
  constexpr double kMargin = 1.03;
  const std::size_t group = 24;
  for (std::size_t begin = 0; begin < attacks.size(); begin += group) {
    const std::size_t end = std::min(begin + group, attacks.size());
    std::vector<Outcome> outcomes(end - begin);
    tools::Spread(static_cast<int>(options.jobs), outcomes.size(), [&](std::size_t at) {
      const Attack& attack = attacks[begin + at];
      Outcome& outcome = outcomes[at];
      outcome = runner.Judge(attack);
      if (!attack.at_most.empty() && outcome.verdict == "pass") {
        const std::optional<double> most = scores.Of(attack);
        const double score = outcome.json.value("score", 0.0);
        if (!most || score > *most * kMargin)
          outcome.verdict = fmt::format("pass with {:.3f}, {} has {:.3f}", score, attack.at_most,
                                        most.value_or(0));
      }
      if (!attack.drained.empty()) outcome.drained = runner.Judge(attack, true).verdict;
    });
    for (std::size_t at = begin; at < end; ++at) {
      const Attack& attack = attacks[at];
      const Outcome& outcome = outcomes[at - begin];
      const bool expected = std::find(attack.verdicts.begin(), attack.verdicts.end(),
                                      outcome.verdict) != attack.verdicts.end();
      if (!expected || options.times) {
        std::cout << fmt::format("{} {:40} {:16} {:5.1f} s  {}\n", expected ? "ok  " : "BAD ",
                                 attack.name, outcome.verdict, outcome.seconds,
                                 outcome.text.substr(0, 200));
      }
      if (!expected) fault(attack.name);
      options.unchanged.Note(attack.name, expected && outcome.drained == attack.drained);
      if (outcome.drained != attack.drained) {
        fault(fmt::format("{}: {} when drained", attack.name, outcome.drained));
      }
    }
    const Outcome again = runner.Judge(good);
    if (Repeatable(again.json) != Repeatable(first.json)) {
      const std::string difference =
          nlohmann::json::diff(Repeatable(first.json), Repeatable(again.json)).dump();
      fault(fmt::format("after {}: the honest candidate gets {}: {}", attacks[end - 1].name,
                        again.verdict, difference.substr(0, 1000)));
    }
  }
  for (const std::string& left : Leftovers()) fault("left behind: " + left);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    fault("left behind: " + entry.path().string());
  }

  std::cout << fmt::format("{} hostile candidates, {} faults\n", attacks.size(), faults);
  return faults;
}

// Writes the table, or says whether it is what it should be.
bool WriteOrCheck(bool write, const std::vector<Attack>& attacks) {
  const Result<bool> same = tools::PutBetween(
      kBegin, kEnd, Table(attacks), fs::path(ALLRANKS_SOURCE_DIR) / "docs/trust.md", write);
  if (!same) std::cerr << same.error().message << "\n";
  if (!same || write || *same) return same.has_value();
  std::cerr << "docs/trust.md is old: run `attacks --write`\n";
  return false;
}

int Main(int argc, char** argv) {
  CLI::App app("Judges every hostile candidate of tests/attacks");
  Options options;
  app.add_option("name", options.only, "judge only these");
  app.add_option("--jobs", options.jobs, "number of concurrent judgements");
  app.add_option("--every", options.every, "judge only every N-th candidate")
      ->check(CLI::PositiveNumber);
  app.add_option("--first", options.first, "with --every: index of the first candidate, from 0");
  app.add_flag("--write", options.write, "write the table of docs/trust.md");
  app.add_flag("--check", options.check,
               "fail if the table is out of date; like --write, judges nothing");
  app.add_flag("--times", options.times, "print one line per candidate");
  options.unchanged.AddOptions(app);
  CLI11_PARSE(app, argc, argv);
  auto attacks = ReadCorpus(fs::path(ALLRANKS_SOURCE_DIR) / "tests/attacks");
  if (!attacks) {
    std::cerr << attacks.error().message << "\n";
    return 1;
  }
  const std::vector<Attack> all = *attacks;
  if (!options.only.empty()) {
    std::erase_if(*attacks, [&](const Attack& attack) {
      return std::find(options.only.begin(), options.only.end(), attack.name) == options.only.end();
    });
  } else {
    // Too large for the repository.
    Attack huge;
    huge.name = "fifty_megabytes";
    huge.tries = "a reply of 50 MB";
    huge.rows = {"H21"};
    huge.verdicts = {"compile_error", "edit_violation"};
    huge.text = std::string(50'000'000, 'x');
    attacks->push_back(huge);
  }
  if (options.write || options.check) return WriteOrCheck(options.write, *attacks) ? 0 : 1;
  if (options.every > 1) {
    auto& chosen = *attacks;
    std::size_t kept = 0;
    for (std::size_t i = options.first; i < chosen.size(); i += options.every, ++kept)
      if (i != kept) chosen[kept] = std::move(chosen[i]);
    chosen.resize(kept);
  }
  const auto fail = [](const Status& status) {
    std::cerr << status.error().message << "\n";
    return 1;
  };
  if (const Status loaded =
          options.unchanged.Load(fs::path(ALLRANKS_SOURCE_DIR) / "tests/attacks/passed.json");
      !loaded)
    return fail(loaded);
  if (const Status left = LeaveOutUnchanged(&options.unchanged, all, &*attacks); !left)
    return fail(left);
  // The judge's own files, too, so that what it leaves is seen.
  const tools::Scratch scratch("attacks");
  setenv("TMPDIR", scratch.path().c_str(), 1);
  const int faults = RunAll(options, all, *attacks, scratch.path());
  if (const Status stored = options.unchanged.Store(); !stored) return fail(stored);
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace allranks::attacks

int main(int argc, char** argv) { return allranks::attacks::Main(argc, argv); }
