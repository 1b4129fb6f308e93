// A judgement as JSON and as a table: that both say what happened, and only `cost` may change.
#include "judge/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace allranks::judge {
namespace {

using Json = nlohmann::json;

problem::Problem SomeProblem() {
  problem::Problem problem;
  problem.slug = "allreduce_one_shot";
  problem.category = "collective";
  problem.level = "easy";
  problem.params = {"n"};
  return problem;
}

Judgement SomeJudgement() {
  Judgement judgement;
  judgement.seed = "7";
  judgement.profile = "h100x8";
  judgement.profile_version = 2;
  judgement.score = 0.5;
  CaseResult timed;
  timed.what.name = "timed.w8.n4096";
  timed.what.world = 8;
  timed.what.params = {4096};
  timed.ran = true;
  timed.isolated_ns = 9000;
  timed.call_ns = 8000;
  timed.roofline_ns = 4000;
  timed.reference_ns = 4000;
  timed.bytes = 16384;
  timed.moved = {114688, 0, 0, 0, 0};
  judgement.cases.push_back(timed);
  return judgement;
}

TEST(ReportTest, JsonHasTheFiguresOfACase) {
  const Json json = Json::parse(ToJson(SomeProblem(), SomeJudgement()));
  EXPECT_EQ(json["schema"], kReportSchema);
  EXPECT_EQ(json["verdict"], "pass");
  EXPECT_EQ(json["score"], 0.5);
  const Json& one = json["cases"][0];
  EXPECT_EQ(one["params"]["n"], 4096);
  EXPECT_EQ(one["roofline_fraction"], 0.5);
  EXPECT_EQ(one["speedup_vs_reference"], 0.5);
  EXPECT_TRUE(one["baseline_ns"].is_null());
  EXPECT_EQ(one["moved_bytes"]["sm"], 114688);
  EXPECT_DOUBLE_EQ(one["bandwidth_gbs"], 16384.0 / 8000.0);
}

TEST(ReportTest, AJudgementHasItsOwnFigures) {
  Judgement judgement = SomeJudgement();
  judgement.cases.push_back(judgement.cases[0]);
  judgement.cases[1].reference_ns = 8000 * 8;
  Json json = Json::parse(ToJson(SomeProblem(), judgement));
  EXPECT_EQ(json["strict"], true);
  EXPECT_EQ(json["lenient"], true);
  EXPECT_DOUBLE_EQ(json["speedup_vs_reference"], 2);  // of 0.5 and 8
  EXPECT_TRUE(json["speedup_vs_baseline"].is_null());
  judgement.verdict = Verdict::kWrongResult;
  json = Json::parse(ToJson(SomeProblem(), judgement));
  EXPECT_EQ(json["strict"], false);
  EXPECT_EQ(json["lenient"], false);
  EXPECT_TRUE(json["speedup_vs_reference"].is_null());
}

TEST(ReportTest, TheBandIsThereIfItIsKnown) {
  Judgement judgement = SomeJudgement();
  EXPECT_TRUE(Json::parse(ToJson(SomeProblem(), judgement))["band"].is_null());
  judgement.band = {0.5, 2};
  const Json json = Json::parse(ToJson(SomeProblem(), judgement));
  EXPECT_EQ(json["band"]["profiles"], 2);
  EXPECT_EQ(json["band"]["speedup_vs_reference"], Json({0.5, 2.0}));
}

TEST(ReportTest, OnlyCostDependsOnTheMachine) {
  Judgement slow = SomeJudgement();
  slow.cost = {.compile = 9, .ranks = 9, .node = 9, .judge = 9, .wall = 9, .cached_build = true};
  Json a = Json::parse(ToJson(SomeProblem(), SomeJudgement()));
  Json b = Json::parse(ToJson(SomeProblem(), slow));
  EXPECT_NE(a, b);
  a.erase("cost");
  b.erase("cost");
  EXPECT_EQ(a, b);
}

TEST(ReportTest, AFailureHasNoScoreAndSaysWhy) {
  Judgement judgement = SomeJudgement();
  judgement.verdict = Verdict::kDeadlock;
  judgement.text = "rank 1 waits at candidate.cu:12";
  const Json json = Json::parse(ToJson(SomeProblem(), judgement));
  EXPECT_EQ(json["score"], 0.0);
  EXPECT_EQ(json["pass"], false);
  const std::string table = ToTable(SomeProblem(), judgement);
  EXPECT_NE(table.find("deadlock"), std::string::npos);
  EXPECT_NE(table.find("candidate.cu:12"), std::string::npos);
}

TEST(ReportTest, BytesThatAreNoTextDoNotBreakTheJson) {
  Judgement judgement = SomeJudgement();
  judgement.log = "\xff\xfe\x00 prints";
  EXPECT_NO_THROW(Json::parse(ToJson(SomeProblem(), judgement)));
}

TEST(ReportTest, AComparisonIsByCase) {
  Judgement faster = SomeJudgement();
  faster.cases[0].call_ns = 4000;
  const std::string text = ToComparison(SomeProblem(), "a.cu", SomeJudgement(), "b.cu", faster);
  EXPECT_NE(text.find("2.00x"), std::string::npos) << text;
}

}  // namespace
}  // namespace allranks::judge
