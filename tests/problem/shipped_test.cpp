// The problems that ship, as far as that can be told without a compiler: each loads, its sources
// fit its template, and every mutant can be made and is another program.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "problem/args.h"
#include "problem/controls.h"
#include "problem/hardware.h"
#include "problem/lock.h"
#include "problem/source.h"

namespace allranks::problem {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Folders() { return Find(fs::path(ALLRANKS_SOURCE_DIR) / "problems"); }

std::vector<fs::path> Solutions(const Problem& problem) {
  std::vector<fs::path> all = {"reference.cu", "baseline.cu"};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(problem.folder / "alternates", error)) {
    if (entry.path().extension() == ".cu")
      all.push_back(fs::path("alternates") / entry.path().filename());
  }
  return all;
}

TEST(ShippedTest, EverySourceFitsItsTemplate) {
  for (const fs::path& folder : Folders()) {
    const auto problem = Load(folder);
    ASSERT_TRUE(problem) << problem.error().message;
    const auto region = SplitTemplate(TemplateOf(*problem).value());
    ASSERT_TRUE(region) << folder << region.error().message;
    for (const fs::path& name : Solutions(*problem)) {
      const auto whole = SolutionOf(*problem, name);
      EXPECT_TRUE(whole) << folder / name << ": " << whole.error().message;
    }
    const std::vector<Control> controls = ControlsOf(*problem);
    EXPECT_FALSE(controls.empty()) << folder;
    for (const Control& control : controls) {
      EXPECT_EQ(control.error, "") << folder << " " << control.name;
      EXPECT_TRUE(Assemble(*region, control.region)) << folder << " " << control.name;
    }
    EXPECT_FALSE(RenderHeader(*problem).empty());
    const auto lock = LoadLock(*problem);
    EXPECT_TRUE(lock) << lock.error().message;
  }
}

TEST(ShippedTest, EveryMutantIsAnotherProgram) {
  std::size_t mutants = 0;
  for (const fs::path& folder : Folders()) {
    const Problem problem = Load(folder).value();
    const Region region = SplitTemplate(TemplateOf(problem).value()).value();
    std::set<std::string> seen = {SolutionOf(problem, "reference.cu").value()};
    for (const Mutant& mutant : problem.mutants) {
      ++mutants;
      const auto text = MutantOf(problem, mutant);
      EXPECT_TRUE(text) << folder << " " << mutant.name << ": " << text.error().message;
      if (!text) continue;
      EXPECT_TRUE(Assemble(region, *text)) << folder << " " << mutant.name;
      EXPECT_TRUE(seen.insert(*text).second) << folder << " " << mutant.name << " is there twice";
    }
  }
  EXPECT_GT(mutants, 0u);
}

// Two ideas beside the reference's show that a family's oracle refuses nothing right.
TEST(ShippedTest, EveryFamilyHasAProblemWithTwoAlternates) {
  std::map<std::string, std::size_t> most;
  for (const fs::path& folder : Folders()) {
    const Problem problem = Load(folder).value();
    most[problem.family] = std::max(most[problem.family], Solutions(problem).size() - 2);
  }
  for (const auto& [family, alternates] : most) EXPECT_GE(alternates, 2u) << family;
}

TEST(ShippedTest, OnlyQueriesHaveNoProgramForHardware) {
  for (const fs::path& folder : Folders()) {
    const Problem problem = Load(folder).value();
    const auto files = ExportForHardware(problem, ReadFile(folder / "reference.cu").value());
    EXPECT_EQ(files.has_value(), problem.window != Window::kQuery) << folder;
  }
}

}  // namespace
}  // namespace allranks::problem
