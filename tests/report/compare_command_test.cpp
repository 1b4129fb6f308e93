// `allranks compare` from the outside, on folders of runs.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "synthetic.h"

namespace allranks::report {
namespace {

namespace fs = std::filesystem;

class CompareCommandTest : public ::testing::Test {
 protected:
  CompareCommandTest() {
    std::string name = (fs::temp_directory_path() / "allranks_compare.XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~CompareCommandTest() override { fs::remove_all(folder_); }

  // A run of eight problems, of which the first `passes` pass.
  void Write(const std::string& name, const std::string& model, int passes) {
    campaign::Run run = EmptyRun(name);
    AddModel(&run, model);
    for (int p = 0; p < 8; ++p) {
      const std::string slug = "p" + std::to_string(p);
      run.settings.problems.push_back(ProblemNamed(slug, slug));
      AddSample(&run, model, slug, 0, {RoundOf(1, p < passes ? 0.5 : -1)});
      const campaign::Sample& sample = run.samples.back();
      EXPECT_TRUE(
          WriteWhole(folder_ / name / campaign::SampleFolder(model, slug, 0) / "sample.json",
                     campaign::ToJson(sample)));
    }
    EXPECT_TRUE(WriteWhole(folder_ / name / "run.json", campaign::ToJson(run.settings)));
  }

  std::string Run(const std::string& arguments, int code) {
    const std::string line =
        "cd " + folder_.string() + " && " ALLRANKS_COMMAND " compare " + arguments + " 2>&1";
    FILE* pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) return "";
    std::string output;
    std::array<char, 4096> buffer;
    std::size_t got = 0;
    while ((got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0)
      output.append(buffer.data(), got);
    const int status = pclose(pipe);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == code) << output;
    return output;
  }

  fs::path folder_;
};

TEST_F(CompareCommandTest, ComparesTwoFolders) {
  Write("old", "m", 0);
  Write("new", "n", 8);
  const auto json = nlohmann::json::parse(Run("old new --json", 0), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["a"]["run"], "old");
  EXPECT_EQ(json["pairs"][0]["problems"], 8);
  EXPECT_EQ(json["pairs"][0]["metrics"]["score"]["difference"], 0.5);
  EXPECT_EQ(json["pairs"][0]["metrics"]["score"]["b_is"], "better");
  EXPECT_NEAR(json["pairs"][0]["sign_test"]["by_family"]["p"].get<double>(), 2.0 / 256, 1e-12);
  EXPECT_EQ(json["pairs"][0]["different"].size(), 8u);
  EXPECT_NE(Run("old new --models m n", 0).find("B (n) is better than A (m) by +100.0 points"),
            std::string::npos);
}

TEST_F(CompareCommandTest, SaysWhatToDoAboutMistakes) {
  Write("old", "m", 0);
  EXPECT_NE(Run("old missing", 2).find("missing is not a run folder"), std::string::npos);
  EXPECT_NE(Run("old old --models m x", 2).find("old has m"), std::string::npos);
  ASSERT_TRUE(WriteWhole(folder_ / "odd" / "run.json", "{\"schema\": 99}"));
  EXPECT_NE(Run("old odd", 2).find("schema 99"), std::string::npos);
}

}  // namespace
}  // namespace allranks::report
