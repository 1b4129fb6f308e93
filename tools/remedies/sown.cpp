// See sown.h.
#include "remedies/sown.h"

#include <algorithm>

#include "mutants/judging.h"
#include "problem/source.h"

namespace allranks::remedies {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Result<std::vector<mutants::Mutant>> Sown(bool by_hand, const std::vector<std::string>& only) {
  const fs::path source = ALLRANKS_SOURCE_DIR;
  auto all = mutants::SeedProblems(source / "problems", source / "tests/mutants/blind");
  if (!all) return all;
  const auto equal = mutants::ReadEquivalent(source / "tests/mutants/equivalent.tsv");
  if (!equal) return Fail(equal.error());
  if (by_hand) {
    auto more = mutants::ReadByHand(source / "tests/mutants/blind", source / "problems",
                                    source / "tests/programs");
    if (!more) return more;
    std::move(more->begin(), more->end(), std::back_inserter(*all));
  }
  std::erase_if(*all, [&](const mutants::Mutant& one) {
    return equal->contains(one.id) ||
           (!only.empty() && std::none_of(only.begin(), only.end(), [&](const std::string& name) {
             return one.id.starts_with(name);
           }));
  });
  return all;
}

namespace {

// The file that the judge compiles, whose lines findings name: a solution is a region of it.
std::string WholeOf(const mutants::Mutant& mutant) {
  if (mutants::IsProgram(mutant)) return mutant.text;
  const Result<problem::Region> region = mutants::RegionAt(mutants::HomeOf(mutant));
  if (!region) return mutant.text;
  return problem::Assemble(*region, mutant.text).value_or(mutant.text);
}

}  // namespace

Cure TrySown(const mutants::Mutant& mutant, const std::string& command, const fs::path& folder,
             Json* first_findings) {
  const std::string file =
      mutants::IsProgram(mutant) ? mutant.original.filename().string() : mutants::kCandidateFile;
  const auto judge = [&](const std::string& text, bool first) {
    mutants::Mutant changed = mutant;
    changed.text = text;
    const Json json = Json::parse(mutants::JudgeOnce(changed, command, folder), nullptr, false);
    Trial trial;
    const std::string verdict = json.is_object() ? json.value("verdict", "none") : "none";
    if (verdict == "compile_error") {
      trial.error = json.value("text", "");
      return trial;
    }
    trial.findings = Counted(json);
    if (verdict != "pass") trial.trouble = verdict + ".";
    if (first && !trial.findings.empty()) *first_findings = trial.findings;
    return trial;
  };
  return TryCure(file, WholeOf(mutant), judge);
}

}  // namespace allranks::remedies
