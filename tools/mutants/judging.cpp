#include "mutants/judging.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "problem/problem.h"

namespace allranks::mutants {

namespace fs = std::filesystem;

namespace {

// FNV-1a: names of files, nothing that anybody attacks.
std::uint64_t HashOf(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

Verdict Parse(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return {"none", text.substr(0, 200)};
  Verdict verdict;
  verdict.word = json.value("verdict", "none");
  verdict.text = json.value("text", "");
  verdict.lenient = json.value("lenient", false);
  return verdict;
}

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

void Run(const std::vector<std::string>& words, const fs::path& out) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    const int file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDOUT_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
}

}  // namespace

Judge::Judge(fs::path folder, std::string command, std::vector<std::string> options)
    : folder_(std::move(folder)), command_(std::move(command)), options_(std::move(options)) {
  fs::create_directories(folder_);
}

fs::path Judge::PathOf(const Mutant& mutant) const {
  return folder_ / fmt::format("{:016x}.json", HashOf(mutant.problem + "\n" + mutant.text));
}

Verdict Judge::Kept(const Mutant& mutant) const {
  const fs::path path = PathOf(mutant);
  return fs::exists(path) ? Parse(path) : Verdict{};
}

Verdict Judge::Of(const Mutant& mutant, bool deep) const {
  if (Verdict kept = Kept(mutant); !kept.word.empty()) return kept;
  const auto begin = std::chrono::steady_clock::now();
  const fs::path path = PathOf(mutant);
  const fs::path source = fs::path(path).replace_extension(".cu");
  const fs::path out = fs::path(path).replace_extension(".out");
  std::ofstream(source, std::ios::binary) << mutant.text;
  const std::string first = SmallCase(mutant);
  std::vector<std::vector<std::string>> stages = {{"--visible"}, {}};
  if (!first.empty()) stages.insert(stages.begin(), {"--case", first});
  Verdict verdict;
  for (const std::vector<std::string>& cases : stages) {
    std::vector<std::string> words = {command_,        "judge",  mutant.problem, "--solution",
                                      source.string(), "--seed", "mutants",      "--json"};
    words.insert(words.end(), options_.begin(), options_.end());
    words.insert(words.end(), cases.begin(), cases.end());
    Run(words, out);
    verdict = Parse(out);
    if (verdict.word != "pass" || !deep) break;
  }
  fs::remove(source);
  // A judge that failed is asked again the next time.
  if (verdict.word != "none" && verdict.word != "internal_error") fs::rename(out, path);
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return verdict;
}

}  // namespace allranks::mutants
