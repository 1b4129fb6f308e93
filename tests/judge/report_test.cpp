// A judgement as JSON and as a table: that both say what happened, and only `cost` may change.
#include "judge/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "judge/conclude.h"

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
  judgement.lenient = true;
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
  judgement.lenient = false;
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
  slow.cost = {.compile = 9,
               .ranks = 9,
               .node = 9,
               .judge = 9,
               .wall = 9,
               .windows = {},
               .cached_build = true};
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

node::Finding Found(node::Finding::Kind kind, const char* file, int line,
                    std::uint64_t schedule = 0) {
  node::Finding finding;
  finding.kind = kind;
  finding.text = "something";
  finding.schedule = schedule;
  finding.accesses.resize(1);
  finding.accesses[0].what = "store";
  finding.accesses[0].file = file;
  finding.accesses[0].line = line;
  return finding;
}

TEST(FindingsTest, OutputsThatMatchAreALenientPass) {
  Judgement judgement = SomeJudgement();
  judgement.cases[0].findings = {Found(node::Finding::Kind::kPortability, "candidate.cu", 3)};
  Conclude(nullptr, &judgement);
  EXPECT_EQ(judgement.verdict, Verdict::kPass) << "portability does not count";
  EXPECT_NE(ToTable(SomeProblem(), judgement).find("not counted: 1 finding: 1 portability"),
            std::string::npos);

  judgement = SomeJudgement();
  judgement.cases.push_back(judgement.cases[0]);
  judgement.cases[1].what.name = "drawn.w8.n1";
  judgement.cases[0].findings = {Found(node::Finding::Kind::kUninitialised, "candidate.cu", 4)};
  judgement.cases[1].findings = {Found(node::Finding::Kind::kScope, "candidate.cu", 5),
                                 Found(node::Finding::Kind::kUninitialised, "candidate.cu", 4)};
  Conclude(nullptr, &judgement);
  EXPECT_EQ(judgement.verdict, Verdict::kRace) << "it explains the uninitialised read";
  EXPECT_TRUE(judgement.lenient);
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::kMemoryError);
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::kRace);
  EXPECT_NE(judgement.text.find("candidate.cu:5"), std::string::npos) << judgement.text;
  const Json json = Json::parse(ToJson(SomeProblem(), judgement));
  EXPECT_EQ(json["strict"], false);
  EXPECT_EQ(json["lenient"], true);
  EXPECT_EQ(json["score"], 0.0);
  ASSERT_EQ(json["findings"].size(), 2u) << "the same place in two cases is one finding";
  EXPECT_EQ(json["findings"][0]["kind"], "uninitialised");
  EXPECT_EQ(json["findings"][0]["count"], 2);
  EXPECT_EQ(json["findings"][0]["cases"], Json({"timed.w8.n4096", "drawn.w8.n1"}));
}

TEST(FindingsTest, WhatEndedAWindowSaysMore) {
  Judgement judgement = SomeJudgement();
  judgement.cases[0].findings = {Found(node::Finding::Kind::kRace, "candidate.cu", 3)};
  judgement.verdict = judgement.cases[0].verdict = Verdict::kDeadlock;
  Conclude(nullptr, &judgement);
  EXPECT_EQ(judgement.verdict, Verdict::kDeadlock);
  EXPECT_FALSE(judgement.lenient);
  EXPECT_EQ(judgement.findings.size(), 1u);

  judgement = SomeJudgement();
  judgement.cases[0].findings = {Found(node::Finding::Kind::kRace, "candidate.cu", 3)};
  judgement.verdict = judgement.cases[0].verdict = Verdict::kWrongResult;
  judgement.text = judgement.cases[0].text = "out[7] is wrong";
  Conclude(nullptr, &judgement);
  EXPECT_EQ(judgement.verdict, Verdict::kRace);
  EXPECT_FALSE(judgement.lenient);
  EXPECT_NE(judgement.text.find("out[7] is wrong"), std::string::npos);
}

TEST(FindingsTest, AFailureUnderAnotherScheduleIsAStrictOneOnly) {
  Judgement judgement = SomeJudgement();
  judgement.cases[0].verdict = Verdict::kWrongResult;
  judgement.cases[0].schedule = 2;
  judgement.cases[0].text = "under schedule 2: out[7] is wrong";
  Conclude(&judgement.cases[0], &judgement);
  EXPECT_EQ(judgement.verdict, Verdict::kWrongResult);
  EXPECT_TRUE(judgement.lenient);
  const Json json = Json::parse(ToJson(SomeProblem(), judgement));
  EXPECT_EQ(json["cases"][0]["schedule"], 2);
  EXPECT_EQ(json["strict"], false);
}

TEST(FindingsTest, LinesAreOfTheCandidatesOwnFile) {
  wire::JudgeRunReply reply;
  reply.findings.resize(2);
  reply.findings[0].accesses.resize(1);
  reply.findings[0].accesses[0].file = "/tmp/candidate.cu";
  reply.findings[0].accesses[0].line = 12;
  reply.findings[1].kind = 200;  // none that is known
  const auto findings = FindingsOf(reply);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].accesses[0].file, "candidate.cu");
}

TEST(ReportTest, BytesThatAreNoTextDoNotBreakTheJson) {
  Judgement judgement = SomeJudgement();
  judgement.log = "\xff\xfe\x00 prints";
  EXPECT_TRUE(Json::accept(ToJson(SomeProblem(), judgement)));
}

TEST(ReportTest, AComparisonIsByCase) {
  Judgement faster = SomeJudgement();
  faster.cases[0].call_ns = 4000;
  const std::string text = ToComparison(SomeProblem(), "a.cu", SomeJudgement(), "b.cu", faster);
  EXPECT_NE(text.find("2.00x"), std::string::npos) << text;
}

}  // namespace
}  // namespace allranks::judge
