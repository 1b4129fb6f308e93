// Which candidates tools/attacks and tools/honest leave out: those that nothing has changed for.
#include "common/unchanged.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/run.h"

namespace allranks::tools {
namespace {

class UnchangedTest : public testing::Test {
 protected:
  const std::string problem = "flag_pingpong";
  const Scratch folder{"unchanged"};
  const std::filesystem::path file = folder.path() / "passed.json";

  // One run of a tool with these options on one candidate: whether it is left out. A candidate that
  // is not is judged, with this outcome.
  bool LeftOut(const std::vector<std::string>& options, const std::string& text, bool good = true) {
    CLI::App app;
    Unchanged unchanged;
    unchanged.AddOptions(app);
    std::vector<std::string> words(options.rbegin(), options.rend());
    app.parse(words);
    EXPECT_TRUE(unchanged.Load(file).has_value());
    const Result<bool> out = unchanged.LeaveOut("one", problem, text);
    EXPECT_TRUE(out.has_value()) << out.error().message;
    if (out.has_value() && !*out) unchanged.Note("one", good);
    EXPECT_TRUE(unchanged.Store().has_value());
    return out.value_or(false);
  }
};

TEST_F(UnchangedTest, NothingIsLeftOutWithoutARecord) {
  EXPECT_FALSE(LeftOut({"--changed", "--sample", "0"}, "text"));
  EXPECT_FALSE(LeftOut({"--changed", "--sample", "0"}, "text")) << "only --record writes";
}

TEST_F(UnchangedTest, WhatHasPassedIsLeftOutUntilItChanges) {
  EXPECT_FALSE(LeftOut({"--record"}, "text"));
  EXPECT_TRUE(LeftOut({"--changed", "--sample", "0"}, "text"));
  EXPECT_FALSE(LeftOut({}, "text")) << "only with --changed";
  EXPECT_FALSE(LeftOut({"--changed", "--sample", "0"}, "another text"));
  EXPECT_FALSE(LeftOut({"--changed", "--sample", "1"}, "text")) << "every day is a sample's day";
}

TEST_F(UnchangedTest, WhatFailsIsForgotten) {
  EXPECT_FALSE(LeftOut({"--record"}, "text"));
  EXPECT_FALSE(LeftOut({"--changed", "--record", "--sample", "1"}, "text", /*good=*/false));
  EXPECT_FALSE(LeftOut({"--changed", "--sample", "0"}, "text"));
}

TEST_F(UnchangedTest, AProblemMustExist) {
  CLI::App app;
  Unchanged unchanged;
  unchanged.AddOptions(app);
  app.parse("--record");
  ASSERT_TRUE(unchanged.Load(file).has_value());
  EXPECT_FALSE(unchanged.LeaveOut("one", "no_such_problem", "text").has_value());
}

}  // namespace
}  // namespace allranks::tools
