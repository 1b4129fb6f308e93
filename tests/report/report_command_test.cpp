// `allranks report` from the outside, on a made-up run.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "page_fixture.h"

namespace allranks::report {
namespace {

using nlohmann::json;

struct Said {
  int code = -1;
  std::string out, err;
};
Said Command(const std::filesystem::path& folder, const std::string& arguments) {
  const std::string line = fmt::format("cd '{}' && '{}' report {} >out 2>err", folder.string(),
                                       ALLRANKS_COMMAND, arguments);
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadWhole(folder / "out").value_or(""),
          ReadWhole(folder / "err").value_or("")};
}

TEST(Command, ReportsARunFromItsFolder) {
  const Folder folder;
  campaign::Run run =
      MakeRun(folder.path() / "run", {.models = 2, .problems = 2, .samples = 2, .rounds = 1});
  ASSERT_TRUE(WriteWhole(run.folder / "run.json", campaign::ToJson(run.settings)));
  run.samples.pop_back();  // not finished
  for (const campaign::Sample& sample : run.samples)
    ASSERT_TRUE(WriteWhole(run.folder /
                               campaign::SampleFolder(sample.model, sample.problem, sample.sample) /
                               "sample.json",
                           campaign::ToJson(sample)));
  const Said said = Command(folder.path(), "run --no-plots --title 'A title'");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("atlas-5"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("run/report/index.html"), std::string::npos) << said.out;
  const std::string page = ReadWhole(folder.path() / "run/report/index.html").value();
  EXPECT_NE(page.find("<title>A title</title>"), std::string::npos);
  EXPECT_EQ(json::parse(DataOf(page))["runs"][0]["unfinished"], 1);

  const Said printed = Command(folder.path(), "run --no-plots --json --out elsewhere");
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_EQ(printed.out, ReadWhole(folder.path() / "elsewhere/summary.json").value());
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "elsewhere/index.html"));
}

TEST(Command, MistakesEndWithTheirRemedy) {
  const Folder folder;
  const campaign::Run run = MakeRun(folder.path() / "run", {.models = 1, .problems = 1});
  ASSERT_TRUE(WriteWhole(run.folder / "run.json", campaign::ToJson(run.settings)));
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const Said said = Command(folder.path(), arguments);
    EXPECT_EQ(said.code, 2) << arguments;
    EXPECT_NE(said.err.find(words), std::string::npos) << said.err;
  };
  refused("nowhere", "allranks run --out");
  refused("run run", "run is given twice");
  std::filesystem::copy(run.folder, folder.path() / "other",
                        std::filesystem::copy_options::recursive);
  refused("run other", "--out DIR");
  refused("run --panel nobody", "nobody");
}

}  // namespace
}  // namespace allranks::report
