// Records come back from their JSON as they were, damaged ones are refused, and a run is read as it
// lies on the disk.
#include "campaign/record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "campaign/reply.h"
#include "judge/report.h"

namespace allranks::campaign {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class RecordTest : public testing::Test {
 protected:
  RecordTest() {
    char name[] = "/tmp/allranks-record-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~RecordTest() override { fs::remove_all(folder_); }
  fs::path folder_;
};

Round SomeRound() {
  Round round;
  round.round = 2;
  round.key = "k";
  round.kind = "repair";
  round.finish = "stop";
  round.answer = "source";
  round.usage = {.input = 10, .cached_input = 3, .output = 1ull << 60, .reasoning = 4};
  round.usage_known = true;
  round.dollars = 0.1;
  round.source_hash = "abc";
  round.verdict = "pass";
  round.strict = round.lenient = true;
  round.score = 1.0 / 3;
  round.speedup_vs_reference = 1.25;
  round.text = "line\nwith \"quotes\" and \x01";
  round.band = {0.9, 1.1};
  CaseFigures one;
  one.name = "timed.w8.n4096";
  one.kind = "timed";
  one.world = 8;
  one.params = {{"n", std::numeric_limits<std::int64_t>::min()}};
  one.verdict = "pass";
  one.call_ns = 8000.125;
  one.moved = {{"sm", std::numeric_limits<std::uint64_t>::max()}};
  round.cases = {one};
  return round;
}

Settings SomeSettings() {
  Settings settings;
  settings.version = "1";
  settings.judge = "j";
  settings.name = "run";
  settings.seed = "s";
  settings.temperature = 0.5;
  settings.few_shot = 2;
  settings.samples = 2;
  ModelFacts model;
  model.name = "m/1";
  settings.models = {model};
  ProblemFacts problem;
  problem.slug = "p";
  problem.parallelism = {"tp"};
  settings.problems = {problem};
  return settings;
}

TEST_F(RecordTest, EverythingComesBack) {
  const Round round = SomeRound();
  const Result<Round> again = RoundFrom(ToJson(round));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(ToJson(*again), ToJson(round));
  EXPECT_EQ(again->score, round.score);
  EXPECT_EQ(again->usage, round.usage);
  EXPECT_EQ(again->cases[0].params, round.cases[0].params);
  EXPECT_EQ(again->cases[0].moved, round.cases[0].moved);
  EXPECT_EQ(again->speedup_vs_reference, 1.25);
  EXPECT_FALSE(again->speedup_vs_baseline);

  const Sample sample{
      .model = "m", .problem = "p", .sample = 3, .rounds = {round, round}, .stopped = "fast"};
  EXPECT_EQ(ToJson(SampleFrom(ToJson(sample)).value()), ToJson(sample));
  EXPECT_EQ(ToJson(SettingsFrom(ToJson(SomeSettings())).value()), ToJson(SomeSettings()));
  EXPECT_EQ(SettingsFrom(ToJson(SomeSettings())).value().temperature, 0.5);
  EXPECT_EQ(SettingsFrom(ToJson(SomeSettings())).value().few_shot, 2);
  EXPECT_FALSE(SettingsFrom(ToJson(Settings())).value().temperature);
}

TEST_F(RecordTest, ARepliesBytesComeBack) {
  std::string every;
  for (int i = 0; i < 256; ++i) every += static_cast<char>(i);
  for (const std::string& text : {std::string(), std::string("\0 \xe2\x82\xac", 5), every}) {
    ReplyRecord record;
    record.text = text;
    record.request = every;
    const Result<ReplyRecord> again = ReplyFrom(ToJson(record));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->text, text);
    EXPECT_EQ(again->request, every);
  }
}

TEST_F(RecordTest, ARunHasABound) {
  Settings settings = SomeSettings();
  settings.samples = kMostSamples + 1;
  EXPECT_FALSE(SettingsFrom(ToJson(settings)));
  settings.samples = kMostSamples;
  EXPECT_TRUE(SettingsFrom(ToJson(settings)));
  settings.problems.resize(kMostChains / kMostSamples + 1);
  EXPECT_FALSE(SettingsFrom(ToJson(settings)));
}

// Each member is needed: a file that lacks one is not read as if it were 0.
TEST_F(RecordTest, AMemberThatIsMissingOrOfAnotherKindIsRefused) {
  const Json whole = Json::parse(ToJson(SomeRound()));
  for (const auto& [name, value] : whole.items()) {
    Json without = whole;
    without.erase(name);
    const Result<Round> lacking = RoundFrom(without.dump());
    ASSERT_FALSE(lacking) << name;
    EXPECT_NE(lacking.error().message.find(name), std::string::npos);
    Json other = whole;
    other[name] = Json::object();
    EXPECT_FALSE(RoundFrom(other.dump())) << name;
  }
  for (const char* text : {"", "[]", "{", "null", "{\"schema\": 1"}) {
    EXPECT_FALSE(RoundFrom(text));
    EXPECT_FALSE(SampleFrom(text));
    EXPECT_FALSE(SettingsFrom(text));
    EXPECT_FALSE(ReplyFrom(text));
  }
  Json later = whole;
  later["schema"] = kRunSchema + 1;
  EXPECT_NE(RoundFrom(later.dump()).error().message.find("version"), std::string::npos);
}

judge::Judgement SomeJudgement() {
  judge::Judgement judgement;
  judgement.lenient = true;
  judgement.score = 0.5;
  for (const double call : {8000.0, 2000.0}) {
    judge::CaseResult timed;
    timed.what.name = call > 5000 ? "timed.a" : "timed.b";
    timed.what.world = 8;
    timed.what.params = {4096};
    timed.ran = true;
    timed.call_ns = call;
    timed.roofline_ns = 1000;
    timed.reference_ns = 4000;
    timed.moved = {7, 0, 0, 0, 0};
    judgement.cases.push_back(timed);
  }
  judge::CaseResult not_run;
  not_run.what.name = "drawn.0";
  not_run.what.kind = problem::Case::Kind::kDrawn;
  not_run.what.params = {1};
  judgement.cases.push_back(not_run);
  return judgement;
}

TEST_F(RecordTest, AJudgementsFiguresAreTaken) {
  problem::Problem problem;
  problem.params = {"n"};
  Round round;
  round.dollars = 3;
  ASSERT_TRUE(TakeVerdict(judge::ToJson(problem, SomeJudgement()), &round));
  EXPECT_EQ(round.verdict, "pass");
  EXPECT_TRUE(round.strict && round.lenient);
  EXPECT_EQ(round.score, 0.5);
  EXPECT_EQ(round.dollars, 3);
  ASSERT_EQ(round.cases.size(), 3u);
  EXPECT_EQ(round.cases[0].params.at("n"), 4096);
  EXPECT_EQ(round.cases[0].moved.at("sm"), 7u);
  EXPECT_EQ(round.cases[2].kind, "drawn");
  EXPECT_EQ(round.cases[2].verdict, "");
  // sqrt(4000/8000 * 4000/2000)
  EXPECT_DOUBLE_EQ(round.speedup_vs_reference.value(), 1);
  EXPECT_FALSE(round.speedup_vs_baseline);

  judge::Judgement wrong = SomeJudgement();
  wrong.verdict = judge::Verdict::kWrongResult;
  wrong.lenient = false;
  wrong.text = std::string(100'000, 'x');
  ASSERT_TRUE(TakeVerdict(judge::ToJson(problem, wrong), &round));
  EXPECT_FALSE(round.strict || round.lenient);
  EXPECT_EQ(round.score, 0);
  EXPECT_LT(round.text.size(), 3000u);
}

TEST_F(RecordTest, AVerdictWithoutSandboxesIsNotAccepted) {
  judge::Judgement judgement;
  judgement.profile = "h100x8";
  judgement.trusted = true;
  problem::Problem problem;
  problem.slug = "p";
  Round round;
  const Status taken = TakeVerdict(judge::ToJson(problem, judgement), &round);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("--trusted"), std::string::npos) << taken.error().message;
  judgement.trusted = false;
  EXPECT_TRUE(TakeVerdict(judge::ToJson(problem, judgement), &round));
}

TEST_F(RecordTest, FindingsPartStrictFromLenient) {
  problem::Problem problem;
  problem.params = {"n"};
  Json json = Json::parse(judge::ToJson(problem, SomeJudgement()));
  json["strict"] = false;
  json["lenient"] = true;
  json["band"] = {{"profiles", 2}, {"speedup_vs_reference", {0.5, 1.5}}};
  Round round;
  ASSERT_TRUE(TakeVerdict(json.dump(), &round));
  EXPECT_FALSE(round.strict);
  EXPECT_TRUE(round.lenient);
  EXPECT_EQ(round.score, 0);
  EXPECT_EQ(round.band, (std::vector<double>{0.5, 1.5}));
  EXPECT_FALSE(TakeVerdict("{}", &round));
  json["schema"] = judge::kReportSchema + 1;
  EXPECT_FALSE(TakeVerdict(json.dump(), &round));
}

TEST_F(RecordTest, ARunIsReadAsItLies) {
  EXPECT_NE(LoadRun(folder_).error().message.find("allranks run"), std::string::npos);
  ASSERT_TRUE(WriteWhole(folder_ / "run.json", ToJson(SomeSettings())));
  Result<campaign::Run> run = LoadRun(folder_);
  ASSERT_TRUE(run);
  ASSERT_EQ(run->unfinished.size(), 2u);
  EXPECT_EQ(run->unfinished[0].why, "not started");

  Sample sample{
      .model = "m/1", .problem = "p", .sample = 1, .rounds = {SomeRound()}, .stopped = "rounds"};
  const fs::path place = folder_ / SampleFolder("m/1", "p", 1);
  ASSERT_TRUE(WriteWhole(place / "sample.json", ToJson(sample)));
  const fs::path first = folder_ / RoundFolder("m/1", "p", 0, 1);
  ReplyRecord reply;
  reply.dollars = 2;
  reply.wasted_dollars = 0.5;
  ASSERT_TRUE(WriteWhole(first / "reply.json", ToJson(reply)));
  run = LoadRun(folder_);
  ASSERT_EQ(run->samples.size(), 1u);
  EXPECT_EQ(run->samples[0].sample, 1);
  EXPECT_EQ(run->unfinished[0].why, "ended in round 1");
  EXPECT_DOUBLE_EQ(run->dollars, 2.5);

  // Cut off by a kill: perhaps charged, not known.
  ASSERT_TRUE(WriteWhole(first / "attempts.jsonl",
                         "{\"event\":\"begin\",\"most\":7}\n{\"event\":\"begin\",\"most\":5}\n"
                         "{\"event\":\"end\",\"dollars\":4}\n{\"event\":\"begin\",\"most\":1}\n"));
  EXPECT_DOUBLE_EQ(SpentInRun(folder_).known, 4);
  EXPECT_DOUBLE_EQ(SpentInRun(folder_).perhaps, 8);
  EXPECT_DOUBLE_EQ(LoadRun(folder_)->dollars, 4);

  // Attempts of an earlier process that the reply does not know of; half a line at a crash.
  ASSERT_TRUE(WriteWhole(first / "attempts.jsonl",
                         "{\"dollars\": 1}\n{\"event\":\"sent\"}\n{\"dollars\": 2.5}\n{\"doll"));
  EXPECT_DOUBLE_EQ(LoadRun(folder_)->dollars, 3.5);

  for (const char* damaged : {"", "{}", "{\"schema\": 1}"}) {
    ASSERT_TRUE(WriteWhole(place / "sample.json", damaged));
    run = LoadRun(folder_);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->unfinished.size(), 2u);
  }
  sample.sample = 0;  // copied from elsewhere
  ASSERT_TRUE(WriteWhole(place / "sample.json", ToJson(sample)));
  EXPECT_EQ(LoadRun(folder_)->unfinished.size(), 2u);
}

TEST_F(RecordTest, NamesStayInTheirFolder) {
  for (const char* name :
       {"..", ".", "../../x", "a/b", "a b", "", "~", "C:\\x", "\xff\x01", "%41"}) {
    const fs::path path = SampleFolder(name, "p", 0);
    EXPECT_EQ(path.lexically_normal(), path) << name;
    EXPECT_EQ(std::distance(path.begin(), path.end()), 4) << path;
  }
  EXPECT_NE(SampleFolder("a/b", "p", 0), SampleFolder("a%2Fb", "p", 0));
  const std::string longer(1000, '/');
  EXPECT_NE(SampleFolder(longer, "p", 0), SampleFolder(longer + "/", "p", 0));
  EXPECT_TRUE(WriteWhole(folder_ / SampleFolder(longer, "p", 0) / "x", ""));
}

}  // namespace
}  // namespace allranks::campaign
