// See programs.h.
#include "remedies/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "common/run.h"

namespace allranks::remedies {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kSeconds = 120;

std::vector<Variant> VariantsOf(const fs::path& source) {
  static const std::regex kExpect(R"(// EXPECT (\d+) ([a-z_|]+))"), kRanks(R"(// RANKS (\d+))");
  std::vector<Variant> all;
  int ranks = 0;
  std::string besides;
  std::ifstream in(source);
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kRanks)) ranks = std::stoi(match[1]);
    if (!std::regex_search(line, match, kExpect)) continue;
    const std::string kind = match[2];
    if (kind.starts_with("none") || kind == "portability") continue;
    if (match[1] == "0") besides = kind;
    all.push_back({source, std::stoi(match[1]), 0, kind, ""});
  }
  for (Variant& one : all) {
    one.ranks = ranks;
    if (one.kind.find(besides) == std::string::npos) one.besides = besides;
  }
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

std::string Build(const Variant& variant, const fs::path& source, const std::string& text,
                  const fs::path& folder) {
  std::ofstream(source, std::ios::binary) << text;
  const fs::path home = fs::absolute(variant.source).parent_path();
  const std::vector<std::string> words = {ALLRANKS_NVCC,
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

void RunOnce(const Variant& variant, const std::string& command, const fs::path& folder,
             int schedule, Trial* trial) {
  const fs::path findings = folder / "findings";
  fs::remove(findings);
  std::vector<std::string> words = {
      command,      "exec",           "--check", "--schedule", std::to_string(schedule),
      "--findings", findings.string()};
  if (variant.ranks > 0) words.insert(words.end(), {"--ranks", std::to_string(variant.ranks)});
  words.insert(words.end(), {"--", (folder / "program").string()});
  const tools::Outcome ran = tools::Run(words, folder, kSeconds);
  trial->findings = Json::array();
  for (const Json& finding : Counted(Json::parse(tools::ReadText(findings), nullptr, false)))
    if (finding.value("kind", "") != variant.besides) trial->findings.push_back(finding);
  trial->trouble.clear();
  if (ran.late) {
    trial->trouble = fmt::format("schedule {}: takes too long", schedule);
  } else if (ran.code != 0 && (ran.code != 87 || !trial->findings.empty())) {
    trial->trouble = fmt::format("schedule {}: ends with {}", schedule, ran.code);
  }
}

}  // namespace

std::string Variant::Name() const { return fmt::format("{}:{}", source.stem().string(), bug); }

std::vector<Variant> VariantsOf(const std::vector<std::string>& sources,
                                const std::vector<std::string>& only) {
  std::vector<Variant> variants;
  for (const std::string& source : sources) {
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
  std::erase_if(variants, [&](const Variant& one) {
    return !only.empty() && std::none_of(only.begin(), only.end(), [&](const std::string& name) {
      return name.find(':') == std::string::npos ? one.Name().starts_with(name)
                                                 : one.Name() == name;
    });
  });
  return variants;
}

Cure TryVariant(const Variant& variant, const std::string& command, int schedules,
                const fs::path& folder, Json* first_finding) {
  const fs::path source = folder / variant.source.filename();
  const auto judge = [&](const std::string& text, bool first) {
    Trial trial;
    trial.error = Build(variant, source, text, folder);
    if (!trial.error.empty()) return trial;
    std::string trouble;
    for (int schedule = 0; schedule <= schedules; ++schedule) {
      RunOnce(variant, command, folder, schedule, &trial);
      if (trouble.empty()) trouble = trial.trouble;
      // A broken one may go wrong without a finding under one schedule, and with it under another.
      if (!trial.findings.empty() || (!first && !trial.trouble.empty())) break;
    }
    trial.trouble = trouble;
    if (first && !trial.findings.empty()) *first_finding = trial.findings;
    return trial;
  };
  return TryCure(source.string(), Resolved(variant, folder), judge);
}

}  // namespace allranks::remedies
