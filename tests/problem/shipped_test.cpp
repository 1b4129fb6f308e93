// The problems that ship, as far as that can be told without a compiler: each loads, its sources
// fit its template, and every mutant can be made and is another program.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "problem/args.h"
#include "problem/hardware.h"
#include "problem/lock.h"
#include "problem/source.h"

namespace allranks::problem {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Folders() { return Find(fs::path(ALLRANKS_SOURCE_DIR) / "problems"); }

std::vector<fs::path> Sources(const Problem& problem) {
  std::vector<fs::path> all = {problem.folder / "reference.cu", problem.folder / "baseline.cu"};
  for (const char* part : {"alternates", "controls"}) {
    for (const auto& entry : fs::directory_iterator(problem.folder / part)) {
      if (entry.path().extension() == ".cu") all.push_back(entry.path());
    }
  }
  return all;
}

TEST(ShippedTest, EverySourceFitsItsTemplate) {
  for (const fs::path& folder : Folders()) {
    const auto problem = Load(folder);
    ASSERT_TRUE(problem) << problem.error().message;
    const auto region = SplitTemplate(ReadFile(folder / "template.cu").value());
    ASSERT_TRUE(region) << folder << region.error().message;
    for (const fs::path& path : Sources(*problem)) {
      std::string text = ReadFile(path).value();
      if (text.starts_with("// verdict: ")) text.erase(0, text.find('\n') + 1);
      const auto whole = Assemble(*region, text);
      EXPECT_TRUE(whole) << path << ": " << whole.error().message;
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
    const Region region = SplitTemplate(ReadFile(folder / "template.cu").value()).value();
    const std::string reference = ReadFile(folder / "reference.cu").value();
    std::set<std::string> seen = {reference};
    for (const Mutant& mutant : problem.mutants) {
      ++mutants;
      const auto text = Mutate(problem, mutant, reference);
      EXPECT_TRUE(text) << folder << " " << mutant.name << ": " << text.error().message;
      if (!text) continue;
      EXPECT_TRUE(Assemble(region, *text)) << folder << " " << mutant.name;
      EXPECT_TRUE(seen.insert(*text).second) << folder << " " << mutant.name << " is there twice";
    }
  }
  EXPECT_GT(mutants, 0u);
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
