// See judging.h.
#include "mutants/judging.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "common/run.h"
#include "node/checking.h"
#include "problem/problem.h"

namespace allranks::mutants {

namespace fs = std::filesystem;

namespace {

constexpr int kSchedules = 8;         // of programs, beside 0
constexpr int kJudgeSeconds = 3600;   // judges have limits of their own
constexpr int kCpuSeconds = 300;      // as `problems check` has it
constexpr int kProgramSeconds = 300;  // nothing takes a tenth of it
constexpr int kDeadlock = 86;         // exec's exit code

// The last visible case of the smallest world: small, and larger than the corner cases.
std::string SmallCase(const Mutant& mutant) {
  const Result<problem::Problem> problem = problem::Load(HomeOf(mutant));
  if (!problem) return "";
  const problem::Case* best = nullptr;
  for (const problem::Case& one : problem->cases) {
    if (one.kind != problem::Case::Kind::kVisible) continue;
    if (best == nullptr || one.world <= best->world) best = &one;
  }
  return best == nullptr ? "" : best->name;
}

// In the form of `judge --json`.
std::string Json(const std::string& verdict, const std::string& text, std::uint64_t schedule = 0,
                 const nlohmann::json& findings = nlohmann::json::array()) {
  const char* by = schedule == 0 ? "plain" : schedule < node::kDirected ? "drawn" : "directed";
  return nlohmann::json{
      {"verdict", verdict}, {"text", text}, {"shown_by", by}, {"findings", findings}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// As tests/programs/CMakeLists.txt compiles them.
std::vector<std::string> Nvcc(const Mutant& mutant, const fs::path& source, const fs::path& out) {
  const std::string programs = ALLRANKS_SOURCE_DIR "/tests/programs";
  std::vector<std::string> words = {
      ALLRANKS_NVCC,   "-cudart",
      "shared",        "-lineinfo",
      "-std=c++17",    "-gencode=arch=compute_90,code=[sm_90,compute_90]",
      "-I" + programs, "-I" + mutant.original.parent_path().string()};
  std::istringstream lines(mutant.text);
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
    if (!line.starts_with("// nvcc: ")) continue;
    std::istringstream flags(line.substr(9));
    for (std::string flag; flags >> flag;) words.push_back(flag);
  }
  words.insert(words.end(), {"-o", out.string(), source.string()});
  return words;
}

// What showed under the earliest schedule: a finding that counts, or else a failure.
std::string Found(const fs::path& file) {
  const auto json = nlohmann::json::parse(tools::ReadText(file), nullptr, false);
  if (!json.is_object() || !json.contains("findings")) return "";
  for (const std::uint64_t schedule : json.value("schedules", std::vector<std::uint64_t>{})) {
    for (const auto& finding : json["findings"])
      if (finding.value("counts", false) && finding.value("schedule", 0ull) == schedule)
        return Json(finding.value("kind", ""), finding.value("text", ""), schedule,
                    json["findings"]);
    for (const auto& failure : json["failures"])
      if (failure.value("schedule", 0ull) == schedule)
        return Json(failure.value("code", 0) == kDeadlock ? "deadlock" : "wrong_result",
                    fmt::format("schedule {}: exit code {}", schedule, failure.value("code", 0)),
                    schedule);
  }
  return "";
}

std::string Candidate(const std::string& command, const Mutant& mutant, Kind kind,
                      const fs::path& folder) {
  const fs::path source = folder / kCandidateFile;
  std::ofstream(source, std::ios::binary) << mutant.text;
  std::vector<std::string> words = {command,      "judge",         HomeOf(mutant).string(),
                                    "--solution", source.string(), "--seed",
                                    "mutants",    "--json"};
  // Beside other work a rank may be slow: no verdict is to come from that.
  words.insert(words.end(), {"--rank-seconds", std::to_string(kJudgeSeconds), "--cpu-seconds",
                             std::to_string(kCpuSeconds)});
  if (kind == Kind::kOutputs) words.push_back("--no-check");
  if (const std::string first = SmallCase(mutant); !first.empty()) {
    std::vector<std::string> small = words;
    small.insert(small.end(), {"--case", first});
    const std::string json = tools::Run(small, folder, kJudgeSeconds).out;
    if (kind == Kind::kOriginal || ParseVerdict(json).word != "pass") return json;
  }
  return tools::Run(words, folder, kJudgeSeconds).out;
}

// `binary`: built there, unless it is there.
std::string Program(const std::string& command, const Mutant& mutant, Kind kind,
                    const fs::path& binary, const fs::path& folder) {
  if (!fs::exists(binary)) {
    const fs::path source = folder / mutant.original.filename(), made = folder / "program";
    std::ofstream(source, std::ios::binary) << mutant.text;
    const tools::Outcome built = tools::Run(Nvcc(mutant, source, made), folder, kProgramSeconds);
    if (built.late) return "";
    if (built.code != 0) return Json("compile_error", built.err.substr(0, 1000));
    fs::rename(made, binary);
  }
  const fs::path findings = folder / "findings";
  std::vector<std::string> words = {command, "exec"};
  if (kind != Kind::kOutputs)
    words.insert(words.end(), {"--check", "--schedules", std::to_string(kSchedules), "-j", "1",
                               "--findings", findings.string()});
  words.insert(words.end(), {"--", binary.string()});
  words.insert(words.end(), mutant.arguments.begin(), mutant.arguments.end());
  const tools::Outcome ran = tools::Run(words, folder, kProgramSeconds);
  // Late, not started, or killed, as for want of memory.
  if (ran.late || ran.code == 126 || ran.code == 127 || ran.code == 137) return "";
  if (ran.code == 70) return Json("internal_error", FirstLine(ran.err));
  if (const std::string found = Found(findings); !found.empty()) return found;
  if (ran.code == kDeadlock) return Json("deadlock", FirstLine(ran.err));
  if (ran.code != 0) return Json("wrong_result", FirstLine(ran.err));
  return Json("pass", "");
}

}  // namespace

std::string JudgeOnce(const Mutant& mutant, const std::string& command, const fs::path& folder) {
  if (!IsProgram(mutant)) return Candidate(command, mutant, Kind::kChecked, folder);
  const fs::path binary = folder / "binary";
  fs::remove(binary);
  return Program(command, mutant, Kind::kChecked, binary, folder);
}

Verdict Judge::Of(const Mutant& mutant, Kind kind) const {
  if (Verdict kept = store_->Find(mutant, kind); !kept.word.empty()) return kept;
  const auto begin = std::chrono::steady_clock::now();
  const fs::path folder = store_->Scratch();
  const std::string json = IsProgram(mutant) ? Program(command_, mutant, kind,
                                                       store_->PathOf(mutant, "programs"), folder)
                                             : Candidate(command_, mutant, kind, folder);
  fs::remove_all(folder);
  Verdict verdict = ParseVerdict(json);
  // A judge that failed is asked again the next time.
  if (!Failed(verdict) && !store_->Keep(mutant, kind, json))
    verdict = {.word = "none", .text = "the command was changed while it judged"};
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return verdict;
}

}  // namespace allranks::mutants
