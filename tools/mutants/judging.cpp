// See judging.h.
#include "mutants/judging.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "common/run.h"
#include "problem/problem.h"

namespace allranks::mutants {

namespace fs = std::filesystem;

namespace {

constexpr int kSchedules = 5;         // of programs, beside 0
constexpr int kJudgeSeconds = 3600;   // judges have limits of their own
constexpr int kProgramSeconds = 300;  // nothing takes a tenth of it

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

std::string Json(const std::string& verdict, const std::string& text) {
  return nlohmann::json{{"verdict", verdict}, {"text", text}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
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

// The first finding that counts: its kind and what it says.
std::string Found(const fs::path& file) {
  const auto json = nlohmann::json::parse(tools::ReadText(file), nullptr, false);
  if (!json.is_object() || !json.contains("findings")) return "";
  for (const auto& finding : json["findings"]) {
    const std::string kind = finding.value("kind", "");
    if (kind == "portability" || kind == "leak") continue;
    return nlohmann::json{
        {"verdict", kind}, {"text", finding.value("text", "")}, {"findings", json["findings"]}}
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
  words.insert(words.end(), {"--rank-seconds", std::to_string(kJudgeSeconds)});
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
  for (int schedule = 0; schedule <= (kind == Kind::kOutputs ? 0 : kSchedules); ++schedule) {
    std::vector<std::string> words = {command, "exec"};
    if (kind != Kind::kOutputs)
      words.insert(words.end(), {"--check", "--schedule", std::to_string(schedule), "--findings",
                                 findings.string()});
    words.insert(words.end(), {"--", binary.string()});
    words.insert(words.end(), mutant.arguments.begin(), mutant.arguments.end());
    fs::remove(findings);
    const tools::Outcome ran = tools::Run(words, folder, kProgramSeconds);
    const std::string found = Found(findings);
    const std::string where = fmt::format("schedule {}: {}", schedule, FirstLine(ran.err));
    // Late, not started, or killed, as for want of memory.
    if (ran.late || ran.code == 126 || ran.code == 127 || ran.code == 137) return "";
    if (ran.code == 70) return Json("internal_error", where);
    if (!found.empty()) return found;
    if (ran.code == 86) return Json("deadlock", where);
    if (ran.code != 0) return Json("wrong_result", where);
  }
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
    verdict = {"none", "the command was changed while it judged"};
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return verdict;
}

}  // namespace allranks::mutants
