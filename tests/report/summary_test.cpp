// What a Summary says of runs made up by hand.
#include "report/summary.h"

#include <gtest/gtest.h>

#include "synthetic.h"

namespace allranks::report {
namespace {

Summary Of(const std::vector<campaign::Run>& runs, Options options = {}) {
  Result<Summary> summary = Summarise(runs, options);
  EXPECT_TRUE(summary) << (summary ? "" : summary.error().message);
  return summary ? *summary : Summary{};
}

bool Mentions(const std::vector<std::string>& sentences, const std::string& words) {
  for (const std::string& sentence : sentences)
    if (sentence.find(words) != std::string::npos) return true;
  return false;
}

TEST(Summary, OfNoRunIsAMessage) {
  const Result<Summary> summary = Summarise({}, {});
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().message.find("run"), std::string::npos);
}

TEST(Summary, OfAnEmptyRunIsEmpty) {
  campaign::Run run = EmptyRun("empty");
  Summary summary = Of({run});
  EXPECT_TRUE(summary.models.empty());
  AddModel(&run, "m");
  run.settings.problems.push_back(ProblemNamed("p", "f"));
  summary = Of({run});
  ASSERT_EQ(summary.models.size(), 1u);
  EXPECT_EQ(summary.models[0].all.problems, 0);
  EXPECT_EQ(summary.models[0].unfinished, 1);
  EXPECT_EQ(summary.models[0].all.score.low, 0);
  EXPECT_EQ(summary.models[0].all.score.high, 1);
  EXPECT_TRUE(Mentions(summary.notes, "1 of 1 samples are unfinished"));
  EXPECT_FALSE(summary.problems[0].difficulty);
  for (const std::string& text : {ToJson(summary), ToTable(summary), ModelsCsv(summary),
                                  ProblemsCsv(summary), CasesCsv({run})})
    EXPECT_FALSE(text.empty());
}

TEST(Summary, OneProblemOneModel) {
  campaign::Run run = EmptyRun("one");
  run.settings.problems.push_back(ProblemNamed("p", "f"));
  AddModel(&run, "m");
  AddSample(&run, "m", "p", 0, {RoundOf(1, 0.5)});
  const Summary summary = Of({run});
  const Figures& all = summary.models[0].all;
  EXPECT_DOUBLE_EQ(all.strict_pass.value, 1);
  EXPECT_DOUBLE_EQ(all.score.value, 0.5);
  EXPECT_NEAR(all.strict_pass.low, 0.025, 1e-12);  // one trial says next to nothing
  EXPECT_DOUBLE_EQ(*all.gm_speedup, 1);
  EXPECT_DOUBLE_EQ(all.pass_at.at(1), 1);
  EXPECT_DOUBLE_EQ(all.fast.at("1.5").at(1), 1);
  EXPECT_DOUBLE_EQ(all.fast.at("2").at(1), 0);  // exactly twice as fast is not faster than that
  EXPECT_DOUBLE_EQ(*summary.problems[0].difficulty, 0);
  EXPECT_TRUE(Mentions(summary.notes, "too few"));
}

}  // namespace
}  // namespace allranks::report
