// `honest`: judges every candidate of tests/honest, correct solutions by many designs. Each must
// pass with no finding that counts, whatever it is made of: a judge that is strict must not be
// wrong about those who know what they do. Beside each stand its score and its cost. They have more
// CPU time than a judgement usually has: the machine may be busy. A file whose first line is
// `// open: REASON` is refused today, and is judged with --open only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/run.h"
#include "common/spread.h"
#include "common/unchanged.h"

namespace allranks::honest {
namespace {

namespace fs = std::filesystem;

constexpr int kJudgeSeconds = 900;  // of wall time, on a machine that may be busy

struct Candidate {
  std::string problem, name, path;
  std::string verdict, text;
  double score = 0, seconds = 0;
};

std::vector<Candidate> Find(const fs::path& folder, bool open) {
  std::vector<Candidate> all;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cu") continue;
    if (tools::ReadText(entry.path()).starts_with("// open:") != open) continue;
    Candidate& one = all.emplace_back();
    one.problem = entry.path().parent_path().filename();
    one.name = entry.path().stem();
    one.path = entry.path();
  }
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.problem, a.name) < std::tie(b.problem, b.name);
  });
  return all;
}

void Judge(const std::string& seed, const fs::path& files, Candidate& one) {
  const tools::Outcome ran =
      tools::End(tools::Start({ALLRANKS_COMMAND, "judge", one.problem, "--solution", one.path,
                               "--seed", seed, "--json", "--cpu-seconds", "300"},
                              files),
                 kJudgeSeconds);
  const nlohmann::json json = nlohmann::json::parse(ran.out, nullptr, false);
  if (!json.is_object() || !json.contains("verdict")) {
    one.verdict = "no verdict: " + ran.err.substr(0, 300);
    return;
  }
  one.verdict = json["verdict"].get<std::string>();
  one.text = json.value("text", "");
  one.score = json.value("score", 0.0);
  one.seconds = json["cost"].value("cpu_s", 0.0);
  for (const nlohmann::json& finding : json["findings"])
    if (finding.value("class", "") != "portability") one.verdict = "findings beside a pass";
}

int Main(int argc, char** argv) {
  CLI::App app("Judges the honest candidates of tests/honest");
  std::vector<std::string> only;
  std::string seed = "1";
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  std::size_t every = 1, first = 0;
  bool open = false;
  app.add_option("name", only, "judge only these problems or candidates");
  app.add_flag("--open", open, "judge the candidates that are known to be refused instead");
  app.add_option("--seed", seed, "seed of the judgements");
  app.add_option("--jobs", jobs, "number of concurrent judgements");
  app.add_option("--every", every, "judge only every N-th candidate")->check(CLI::PositiveNumber);
  app.add_option("--first", first, "with --every: index of the first candidate, from 0");
  tools::Unchanged unchanged;
  unchanged.AddOptions(app);
  CLI11_PARSE(app, argc, argv);

  std::vector<Candidate> all = Find(fs::path(ALLRANKS_SOURCE_DIR) / "tests/honest", open);
  if (!only.empty()) {
    std::erase_if(all, [&](const Candidate& one) {
      return std::none_of(only.begin(), only.end(), [&](const std::string& name) {
        return name == one.problem || name == one.name;
      });
    });
  }
  const fs::path record = fs::path(ALLRANKS_SOURCE_DIR) / "tests/honest/passed.json";
  const auto fail = [](const Error& error) {
    std::cerr << error.message << "\n";
    return 1;
  };
  if (const Status loaded = unchanged.Load(record); !loaded) return fail(loaded.error());
  const auto key = [](const Candidate& one) { return one.problem + "/" + one.name; };
  std::vector<Candidate> chosen;
  for (std::size_t i = first; i < all.size(); i += every) {
    const Result<bool> out =
        unchanged.LeaveOut(key(all[i]), all[i].problem, seed + "\n" + tools::ReadText(all[i].path));
    if (!out) return fail(out.error());
    if (!*out) chosen.push_back(all[i]);
  }

  const tools::Scratch scratch("honest");
  std::mutex printing;
  tools::Spread(static_cast<int>(jobs), chosen.size(), [&](std::size_t at) {
    Candidate& one = chosen[at];
    Judge(seed, scratch.path() / std::to_string(at), one);
    const bool good = one.verdict == "pass";
    unchanged.Note(key(one), good);
    const std::lock_guard lock(printing);
    std::cout << fmt::format("{} {:22} {:28} {:5.1f} %  {:5.1f} CPU s  {}\n",
                             good ? "ok  " : "BAD ", one.problem, one.name, one.score * 100,
                             one.seconds, good ? "" : one.verdict + ": " + one.text.substr(0, 300))
              << std::flush;
  });

  int bad = 0;
  std::map<std::string, int> passed;
  double most = 0;
  for (const Candidate& one : chosen) {
    bad += one.verdict == "pass" ? 0 : 1;
    passed[one.problem] += one.verdict == "pass" ? 1 : 0;
    most = std::max(most, one.seconds);
  }
  for (const auto& [problem, count] : passed)
    std::cout << fmt::format("{}: {} pass\n", problem, count);
  std::cout << fmt::format("{} honest candidates, {} refused, at most {:.1f} CPU s\n",
                           chosen.size(), bad, most);
  if (const Status stored = unchanged.Store(); !stored) return fail(stored.error());
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace allranks::honest

int main(int argc, char** argv) { return allranks::honest::Main(argc, argv); }
