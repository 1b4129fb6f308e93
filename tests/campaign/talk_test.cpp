// What a model is told of a judgement: nothing of drawn cases, whatever the judge says about them.
#include "campaign/talk.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "judge/conclude.h"
#include "judge/report.h"
#include "problem/source.h"

namespace allranks::campaign {
namespace {

using Json = nlohmann::ordered_json;
using Next = Assessment::Next;

// Judgements as `judge --drawn-last` may print them: open cases of some worlds, then drawn ones;
// the first failure ends it, in a case or before the first case of a world.
class Judgements {
 public:
  explicit Judgements(unsigned seed) : random_(seed) {}
  int Below(int n) { return std::uniform_int_distribution(0, n - 1)(random_); }

  Json Draw() {
    static const char* const kVerdicts[] = {
        "wrong_result", "race",      "deadlock",      "memory_error", "crash",           "timeout",
        "unsupported",  "tampering", "forbidden_api", "impossible",   "no_communication"};
    Json cases = Json::array();
    const int open = 1 + Below(5), drawn = Below(4);
    const int fails = Below(open + drawn + 1);  // the last: none does
    const bool before_its_run = Below(2) == 0;
    const std::string verdict = kVerdicts[Below(11)];
    Json json = {{"schema", 1}, {"verdict", "pass"}, {"pass", true}, {"text", ""}, {"log", "LOG"}};
    for (int i = 0; i < open + drawn; ++i) {
      const std::string kind = i >= open ? "drawn" : Below(2) == 0 ? "visible" : "timed";
      Json one = {{"name", fmt::format("{}.{}", kind, i)},
                  {"kind", kind},
                  {"ran", i < fails},
                  {"verdict", nullptr},
                  {"text", ""},
                  {"call_ns", nullptr}};
      if (i < fails) {
        one["verdict"] = "pass";
        one["call_ns"] = 1000 + Below(1000);
        one["roofline_ns"] = 500 + Below(500);
        one["speedup_vs_reference"] = 1.5;
      }
      if (i == fails) {
        const std::string words = fmt::format("SECRET_{} {}", kind, one["name"].get<std::string>());
        if (!before_its_run) {
          one["verdict"] = verdict;
          one["text"] = words;
        }
        json["verdict"] = verdict;
        json["pass"] = false;
        json["text"] = words;
        json["log"] = "LOG_" + kind;
        failed = kind;
      }
      cases.push_back(one);
    }
    if (fails == open + drawn) failed = "";
    json["cases"] = cases;
    return json;
  }
  std::string failed;  // kind of the case that ended the last one

 private:
  std::mt19937 random_;
};

// A race between a line of the candidate and line 41.
node::Finding RaceAt(int line) {
  node::Finding finding;
  finding.text = "two accesses to a flag are not ordered";
  finding.missing = fmt::format("nothing orders line {} after line 41", line);
  finding.advice = fmt::format("make line {} an ld.acquire.sys", line);
  finding.accesses.resize(2);
  finding.accesses[0].what = "load";
  finding.accesses[1].what = "store";
  for (node::FindingAccess& access : finding.accesses) access.file = "candidate.cu";
  finding.accesses[0].line = line;
  finding.accesses[1].line = 41;
  return finding;
}

TEST(TalkTest, FindingsOfVisibleCasesAreTold) {
  const std::filesystem::path root = ALLRANKS_SOURCE_DIR;
  const auto problem = problem::Load(root / "problems/p2p/flag_pingpong").value();
  const auto profile = node::LoadProfile(root / "profiles/h100x8.toml").value();
  const problem::PromptContext context{.problem = &problem,
                                       .profile = &profile,
                                       .folder = root / "share/prompts",
                                       .cuda = "13.0",
                                       .flags = {}};
  using Kind = problem::Case::Kind;
  judge::Judgement judgement;
  const auto add = [&](Kind kind, const char* name, std::vector<int> lines) {
    judge::CaseResult& one = judgement.cases.emplace_back();
    one.what = problem.cases.front();
    one.what.kind = kind;
    one.what.name = name;
    one.ran = true;
    one.call_ns = 1000;
    for (const int line : lines) one.findings.push_back(RaceAt(line));
  };
  add(Kind::kVisible, "visible.a", {50});
  add(Kind::kTimed, "timed.b", {50, 60});
  add(Kind::kVisible, "visible.c", {50, 70});
  add(Kind::kDrawn, "drawn.d", {50, 80});
  judge::Conclude(nullptr, &judgement);
  EXPECT_EQ(judgement.verdict, judge::Verdict::kRace);
  EXPECT_TRUE(judgement.lenient);

  const auto made = Assess(judge::ToJson(problem, judgement), 0.9);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->next, Next::kRepair);
  for (const std::string& name : problem::PromptNames(context.folder)) {
    const auto form = problem::LoadPrompt(name, context.folder).value();
    const std::string told = problem::MakeFeedback(form, context, made->feedback).value();
    for (const char* words :
         {"race", "candidate.cu:50", "candidate.cu:41", "nothing orders line 50 after line 41",
          "make line 50 an ld.acquire.sys", "candidate.cu:70", "make line 70 an ld.acquire.sys"})
      EXPECT_NE(told.find(words), std::string::npos) << words << "\n" << told;
    EXPECT_EQ(told.find("make line 50"), told.rfind("make line 50")) << "told twice: " << told;
    for (const char* words : {"candidate.cu:60", "candidate.cu:80", "drawn.d"})
      EXPECT_EQ(told.find(words), std::string::npos) << words << "\n" << told;
  }

  // Only a drawn case shows it: then nothing is said.
  judgement = {};
  add(Kind::kVisible, "visible.a", {});
  add(Kind::kDrawn, "drawn.d", {80});
  judge::Conclude(nullptr, &judgement);
  EXPECT_EQ(judgement.verdict, judge::Verdict::kRace);
  EXPECT_EQ(Assess(judge::ToJson(problem, judgement), 0.9)->feedback.verdict, "pass");
}

TEST(TalkTest, NothingOfDrawnCasesIsTold) {
  const std::filesystem::path root = ALLRANKS_SOURCE_DIR;
  const auto problem = problem::Load(root / "problems/p2p/flag_pingpong").value();
  const auto profile = node::LoadProfile(root / "profiles/h100x8.toml").value();
  const problem::PromptContext context{.problem = &problem,
                                       .profile = &profile,
                                       .folder = root / "share/prompts",
                                       .cuda = "13.0",
                                       .flags = {}};
  Judgements judgements(7);
  int drawn = 0, visible = 0, timed = 0;
  for (const std::string& name : problem::PromptNames(context.folder)) {
    const auto form = problem::LoadPrompt(name, context.folder).value();
    for (int i = 0; i < 300; ++i) {
      const Json json = judgements.Draw();
      const Result<Assessment> made = Assess(json.dump(), 0.9);
      ASSERT_TRUE(made);
      const std::string told = problem::MakeFeedback(form, context, made->feedback).value();
      EXPECT_EQ(told.find("SECRET_drawn"), std::string::npos) << json;
      EXPECT_EQ(told.find("LOG_drawn"), std::string::npos) << json;
      EXPECT_EQ(told.find("SECRET_timed"), std::string::npos) << json;
      EXPECT_EQ(told.find("LOG_timed"), std::string::npos) << json;
      const std::string verdict = json["verdict"];
      if (judgements.failed == "drawn") {
        ++drawn;
        // The same, word for word, as if they had passed.
        Json passed = json;
        passed["verdict"] = "pass";
        passed["pass"] = true;
        const auto other = Assess(passed.dump(), 0.9);
        EXPECT_EQ(told, problem::MakeFeedback(form, context, other->feedback).value());
        EXPECT_EQ(made->next, other->next);
        EXPECT_EQ(told.find(verdict), std::string::npos) << told;
      } else if (judgements.failed == "visible") {
        ++visible;
        EXPECT_NE(told.find("SECRET_visible"), std::string::npos);
        EXPECT_NE(told.find(verdict), std::string::npos);
        EXPECT_EQ(made->next, Next::kRepair);
      } else if (judgements.failed == "timed") {
        ++timed;
        EXPECT_NE(told.find(verdict), std::string::npos);
        EXPECT_NE(told.find("timed."), std::string::npos);
        EXPECT_EQ(made->next, Next::kRepair);
      }
    }
  }
  EXPECT_GT(std::min({drawn, visible, timed}), 50);
}

TEST(TalkTest, TheFractionIsThatOfTimedCases) {
  const auto assess = [](double call, double target) {
    const Json json = {{"verdict", "pass"},
                       {"cases",
                        {{{"name", "a"},
                          {"kind", "timed"},
                          {"verdict", "pass"},
                          {"call_ns", call},
                          {"roofline_ns", 100}},
                         {{"name", "b"},
                          {"kind", "timed"},
                          {"verdict", "pass"},
                          {"call_ns", 50},
                          {"roofline_ns", 100}},  // faster than the bound counts as the bound
                         {{"name", "c"},
                          {"kind", "visible"},
                          {"verdict", "pass"},
                          {"call_ns", 1e9},
                          {"roofline_ns", 1}}}}};
    return Assess(json.dump(), target).value();
  };
  EXPECT_DOUBLE_EQ(assess(400, 0.9).feedback.fraction, 0.5);  // sqrt(1/4 * 1)
  EXPECT_EQ(assess(400, 0.51).next, Next::kImprove);
  EXPECT_EQ(assess(400, 0.49).next, Next::kFast);
  EXPECT_EQ(assess(400, 0.51).feedback.times.size(), 2u);
  EXPECT_FALSE(Assess("nonsense", 0.9));
  EXPECT_FALSE(Assess("{}", 0.9));
}

TEST(TalkTest, WhatWasSaidIsBoundedAndFenced) {
  problem::Answer answer;
  answer.kind = problem::Answer::Kind::kSource;
  answer.source = "// ```\nint x;\n";
  EXPECT_EQ(SaidOf(answer, ""), "````cuda\n// ```\nint x;\n````\n");
  for (int i = 0; i < 100'000; ++i) answer.source += "int y;\n";
  EXPECT_LT(SaidOf(answer, "").size(), kLongestSaid + 1000);
  const problem::Answer none;
  EXPECT_LT(SaidOf(none, std::string(50 << 20, 'x')).size(), kLongestSaid + 1000);
  EXPECT_FALSE(SaidOf(none, " \n").empty());
}

}  // namespace
}  // namespace allranks::campaign
