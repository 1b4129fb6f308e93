// What a Summary says of runs made up by hand.
#include "report/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "base/files.h"
#include "report/compare.h"
#include "report/table.h"
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
  EXPECT_TRUE(Mentions(summary.notes, "too few to rank models"));
}

// Of `passes` of `problems` problems, two to a family.
campaign::Run RunWith(const std::string& name, const std::string& model, int problems, int passes,
                      double fraction = 1) {
  campaign::Run run = EmptyRun(name);
  AddModel(&run, model);
  for (int p = 0; p < problems; ++p) {
    const std::string slug = "p" + std::to_string(p);
    run.settings.problems.push_back(ProblemNamed(slug, "family" + std::to_string(p / 2)));
    AddSample(&run, model, slug, 0, {RoundOf(1, p < passes ? fraction : -1)});
  }
  return run;
}

void AddResults(campaign::Run* run, const std::string& model, int passes, double fraction = 1) {
  AddModel(run, model);
  for (std::size_t p = 0; p < run->settings.problems.size(); ++p)
    AddSample(run, model, run->settings.problems[p].slug, 0,
              {RoundOf(1, static_cast<int>(p) < passes ? fraction : -1)});
}

TEST(Summary, ExcludesWhatIsNotTheModelsFault) {
  campaign::Run run = EmptyRun("run");
  run.settings.samples = 2;
  AddModel(&run, "m");
  for (const char* slug : {"a", "b", "c"})
    run.settings.problems.push_back(ProblemNamed(slug, slug));
  AddSample(&run, "m", "a", 0, {RoundOf(1, 1)});
  AddSample(&run, "m", "a", 1, {RoundWith(1, "unsupported"), RoundOf(2, 1)});
  AddSample(&run, "m", "b", 0, {RoundWith(1, "internal_error")});
  AddSample(&run, "m", "c", 0, {RoundWith(1, "no_answer"), RoundWith(2, "internal_error")});
  const Summary summary = Of({run});
  const ModelSummary& model = summary.models[0];
  EXPECT_EQ(model.all.problems, 2);  // a and c
  EXPECT_EQ(model.all.samples, 2);
  EXPECT_DOUBLE_EQ(model.all.strict_pass.value, 0.5);  // no_answer is a failure
  EXPECT_DOUBLE_EQ(model.all.pass_within.value, 0.5);
  EXPECT_EQ(model.unsupported, 1);
  EXPECT_DOUBLE_EQ(model.unsupported_rate, 0.25);
  EXPECT_EQ(model.internal_errors, 1);
  EXPECT_EQ(model.finished, 4);
  EXPECT_EQ(model.unfinished, 2);
  EXPECT_EQ(model.verdicts.at("unsupported"), 1);
  EXPECT_TRUE(Mentions(summary.notes, "2 of 6 samples are unfinished"));
  EXPECT_TRUE(Mentions(summary.notes, "(a failure of AllRanks): 1 sample."));
  EXPECT_TRUE(Mentions(summary.notes, "1 later round;"));
  EXPECT_TRUE(Mentions(summary.notes, "because unsupported"));
  EXPECT_EQ(summary.problems[1].models.size(), 0u);
  EXPECT_FALSE(summary.problems[1].difficulty);
}

TEST(Summary, RanksOnlyBeyondDoubt) {
  campaign::Run run = RunWith("run", "worst", 80, 5);
  AddResults(&run, "best", 75);
  AddResults(&run, "second", 73);
  AddResults(&run, "middle", 40);
  const Summary summary = Of({run});
  std::vector<std::pair<std::string, int>> ranks;
  for (const ModelSummary& model : summary.models)
    ranks.emplace_back(model.label, model.rank_group);
  EXPECT_EQ(ranks, (std::vector<std::pair<std::string, int>>{
                       {"best", 1}, {"second", 1}, {"middle", 3}, {"worst", 4}}));
  ASSERT_EQ(summary.pairs.size(), 6u);
  EXPECT_EQ(summary.pairs[0].a, "best");
  EXPECT_EQ(summary.pairs[0].b, "second");
  EXPECT_LT(summary.pairs[0].score.low, 0);
  EXPECT_GT(summary.pairs[0].score.high, 0);
  EXPECT_EQ(ToJson(summary), ToJson(Of({run})));  // to the last digit
}

TEST(Summary, TellsModelsOfTheSameNameApart) {
  const Summary summary = Of({RunWith("one", "m", 4, 4), RunWith("two", "m", 4, 3),
                              RunWith("two", "m", 4, 2), RunWith("two", "other", 4, 1)});
  std::vector<std::string> labels;
  for (const ModelSummary& model : summary.models) {
    labels.push_back(model.label);
    EXPECT_EQ(summary.runs[model.run_index].name, model.run);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"m (one)", "m (two)", "m (two) #2", "other"}));
  EXPECT_EQ(summary.problems[0].models.size(), 4u);
}

TEST(Summary, NeverRanksAcrossProfiles) {
  campaign::Run fast = RunWith("fast", "good", 80, 80), slow = RunWith("slow", "bad", 80, 0);
  slow.settings.profile = "b300x8";
  slow.settings.profile_hash = "other";
  slow.settings.prompt_hash = "other prompt";
  const Summary summary = Of({slow, fast});
  EXPECT_EQ(summary.models[0].label, "bad");  // its profile came first
  EXPECT_EQ(summary.models[0].rank_group, 1);
  EXPECT_EQ(summary.models[1].rank_group, 1);
  EXPECT_TRUE(summary.pairs.empty());
  EXPECT_TRUE(Mentions(summary.notes, "different profiles"));
  EXPECT_TRUE(Mentions(summary.notes, "different prompts"));
  EXPECT_EQ(summary.times.size(), 2u);
  const std::string table = ToTable(summary);
  EXPECT_NE(table.find("Profile b300x8"), std::string::npos);
  EXPECT_NE(table.find("Profile h100x8"), std::string::npos);
}

TEST(Summary, PairsOnlyProblemsThatBothWereAsked) {
  campaign::Run one = RunWith("one", "a", 40, 40), two = RunWith("two", "b", 50, 0);
  two.settings.problems[3].hash = "another wording";
  const Summary summary = Of({one, two});
  ASSERT_EQ(summary.pairs.size(), 1u);
  EXPECT_EQ(summary.pairs[0].problems, 39);
  EXPECT_EQ(summary.problems.size(), 50u);
  EXPECT_EQ(summary.problems[45].models.size(), 1u);
  EXPECT_EQ(summary.models[1].all.problems, 50);
  EXPECT_TRUE(Mentions(summary.notes, "did not ask the same problems"));
  // Nothing in common: nothing is said.
  for (campaign::ProblemFacts& facts : two.settings.problems) facts.hash = "another";
  const Summary apart = Of({one, two});
  EXPECT_EQ(apart.pairs[0].problems, 0);
  EXPECT_EQ(apart.models[1].rank_group, 1);
}

TEST(Summary, DifficultyIsThePanels) {
  campaign::Run run = RunWith("run", "a", 2, 2);
  AddResults(&run, "b", 1);
  AddResults(&run, "c", 0);
  EXPECT_NEAR(*Of({run}).problems[0].difficulty, 1 - 2.0 / 3, 1e-12);
  Options options;
  options.panel = {"b", "c"};
  const Summary summary = Of({run}, options);
  EXPECT_NEAR(*summary.problems[0].difficulty, 0.5, 1e-12);
  EXPECT_NEAR(*summary.problems[1].difficulty, 1, 1e-12);
  options.panel = {"nobody"};
  EXPECT_FALSE(Of({run}, options).problems[0].difficulty);
}

std::string ClassWith(double speedup, const std::vector<double>& band) {
  campaign::Run run = RunWith("run", "m", 1, 1);
  campaign::Round& round = run.samples[0].rounds[0];
  round.speedup_vs_reference = speedup;
  round.band = band;
  const Summary summary = Of({run});
  EXPECT_EQ(summary.models[0].classes.size(), 1u);
  return summary.models[0].classes.begin()->first;
}

TEST(Summary, AwardsAClassOnlyToAWholeBand) {
  EXPECT_EQ(ClassWith(1.3, {1.2, 1.25, 1.4}), "better");
  EXPECT_EQ(ClassWith(1.3, {1.19, 1.25, 1.4}), "unresolved");
  EXPECT_EQ(ClassWith(1.19, {1.2, 1.25}), "unresolved");
  EXPECT_EQ(ClassWith(1.0, {0.95, 1.19}), "on_par");
  EXPECT_EQ(ClassWith(0.7, {0.6, 0.94}), "degraded");
  EXPECT_EQ(ClassWith(0.3, {0.1, 0.59}), "severely_degraded");
  EXPECT_EQ(ClassWith(0.3, {}), "unresolved");
}

TEST(Summary, SaysThatTimesAreModelledAndHowFarToTrustThem) {
  const campaign::Run run = RunWith("run", "m", 4, 2);
  Options options;
  options.validated["h100x8"] = "rough";
  const Summary summary = Of({run}, options);
  ASSERT_EQ(summary.times.size(), 1u);
  for (const char* words : {"modelled", "h100x8 version 2", "0123456789ab", "rough", "12.1 %"})
    EXPECT_TRUE(Mentions(summary.times, words)) << words;
  EXPECT_NE(ToTable(summary).find("modelled"), std::string::npos);
  EXPECT_TRUE(Mentions(Of({run}).times, "not known here"));
}

// The figure is docs/fidelity.md's, which a tool writes: both must say the same.
TEST(Summary, QuotesTheHeldOutErrorOfTheFidelityPage) {
  const Result<std::string> page = ReadWhole(ALLRANKS_SOURCE_DIR "/docs/fidelity.md");
  ASSERT_TRUE(page);
  const std::string row = "| mean absolute error, experiments never fitted | ";
  const std::size_t at = page->find(row);
  ASSERT_NE(at, std::string::npos);
  const std::size_t begin = at + row.size();
  const std::string figure = page->substr(begin, page->find(" |", begin) - begin);
  EXPECT_NE(std::string(kHeldOut).find(figure), std::string::npos) << figure;
  std::set<std::string> profiles;  // of experiments that took no part in the fit
  std::istringstream lines(*page);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("| held out |") == std::string::npos) continue;
    const std::size_t platform = line.find(", `") + 3;
    profiles.insert(line.substr(platform, line.find('`', platform) - platform));
  }
  EXPECT_EQ(profiles, (std::set<std::string>{"b300x8", "gh200"}));
  for (const std::string& profile : profiles)
    EXPECT_NE(std::string(kHeldOut).find(profile), std::string::npos) << profile;
}

TEST(Summary, CountsMoneyThatBoughtNothing) {
  campaign::Run run = RunWith("run", "m", 2, 1);
  run.settings.models[0].price_known = true;
  for (campaign::Sample& sample : run.samples) sample.rounds[0].dollars = 0.5;
  run.dollars = 1.25;
  const Summary summary = Of({run});
  EXPECT_DOUBLE_EQ(summary.models[0].dollars, 1);
  EXPECT_DOUBLE_EQ(*summary.models[0].dollars_per_problem, 0.5);
  EXPECT_DOUBLE_EQ(*summary.models[0].dollars_per_pass, 1);
  EXPECT_DOUBLE_EQ(summary.dollars, 1.25);
  EXPECT_DOUBLE_EQ(summary.dollars_elsewhere, 0.25);
}

TEST(Csv, QuotesNamesAndDisarmsFormulas) {
  campaign::Run run = RunWith("run, \"quoted\"", "=cmd|' /C calc'!A0", 1, 1);
  run.settings.problems[0].family = "two\nlines";
  const Summary summary = Of({run});
  const std::string models = ModelsCsv(summary);
  EXPECT_NE(models.find("\r\n'=cmd|' /C calc'!A0,\"run, \"\"quoted\"\"\",all,all,1,1,1,1,1,"),
            std::string::npos)
      << models;
  EXPECT_NE(models.find("family,\"two\nlines\","), std::string::npos);
  for (const char* name : {"=1", "+1", "-1", "@SUM(A1)", "\t=1"}) {
    run.settings.models[0].name = run.samples[0].model = name;
    EXPECT_NE(CasesCsv({run}).find(std::string(",'") + name + ","), std::string::npos) << name;
  }
  // Every row has as many cells as the head.
  run.settings.name = run.settings.models[0].name = run.samples[0].model = "plain";
  run.settings.problems[0].family = "plain";
  AddSample(&run, "plain", "p0", 1, {RoundWith(1, "compile_error")});
  const Summary plain = Of({run});
  for (const std::string& csv : {ModelsCsv(plain), ProblemsCsv(plain), CasesCsv({run})}) {
    std::set<std::ptrdiff_t> counts;
    std::istringstream lines(csv);
    for (std::string line; std::getline(lines, line);)
      counts.insert(std::count(line.begin(), line.end(), ','));
    EXPECT_EQ(counts.size(), 1u) << csv;
  }
}

TEST(Summary, SurvivesNamesThatAreNotText) {
  campaign::Run run = RunWith("run", "bad \xff\xfe \x1b[31m", 1, 1);
  run.samples[0].rounds[0].score = std::numeric_limits<double>::quiet_NaN();
  const Summary summary = Of({run});
  EXPECT_DOUBLE_EQ(summary.models[0].all.score.value, 0);
  EXPECT_FALSE(ToJson(summary).empty());
  EXPECT_EQ(ToTable(summary).find('\x1b'), std::string::npos);
}

// Whatever run.json says, a terminal is never told to do anything.
TEST(Summary, NoNameReachesATerminalUncleaned) {
  const std::string evil =
      "\x1b]0;x\x07\xc2\x9b"
      "31m\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\xa8\x7f\xff";
  std::vector<campaign::Run> runs;
  for (const char* which : {"one", "two"}) {
    campaign::Run run = RunWith(which + evil, "m" + evil, 2, 1);
    campaign::Settings& settings = run.settings;
    for (std::string* text : {&settings.profile, &settings.profile_hash, &settings.prompt,
                              &settings.prompt_hash, &settings.version, &settings.judge})
      *text = which + evil + *text;
    for (campaign::ProblemFacts& facts : settings.problems) facts.family += evil;
    runs.push_back(run);
  }
  const Result<Comparison> comparison = Compare(runs[0], runs[1], {}, {});
  ASSERT_TRUE(comparison);
  const Result<Comparison> failure = Compare(runs[0], runs[1], {"a", "b"}, {});
  ASSERT_FALSE(failure);
  for (const std::string& text :
       {ToTable(Of(runs)), ToTable(*comparison), failure.error().message}) {
    EXPECT_NE(text.find("one"), std::string::npos);
    for (const char* part : {"\x1b", "\x07", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6", "\xd8\x9c",
                             "\xe2\x80\xa8", "\x7f", "\xff"})
      EXPECT_EQ(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(Clean("plain, \xc3\xa4 \xe6\xbc\xa2 \xf0\x9f\x98\x80"),
            "plain, \xc3\xa4 \xe6\xbc\xa2 \xf0\x9f\x98\x80");
  EXPECT_EQ(Clean("\xc0\xaf\xe0\x80\xaf\xf5"), "??????");  // too long forms, no UTF-8
}

// fast_p over the reference: the mean over problems of the share of samples that pass at least p
// times as fast.
TEST(Summary, FastPIsTheShareThatReachesASpeedup) {
  campaign::Run run = EmptyRun("run");
  AddModel(&run, "m");
  for (const char* slug : {"a", "b", "c"})
    run.settings.problems.push_back(ProblemNamed(slug, slug));
  AddSample(&run, "m", "a", 0, {RoundOf(1, 1)});  // twice as fast
  AddSample(&run, "m", "a", 1, {RoundOf(1, -1), RoundOf(2, 1)});
  AddSample(&run, "m", "b", 0, {RoundOf(1, 0.5)});  // as fast, up to rounding of times
  run.samples.back().rounds[0].speedup_vs_reference = 0.9995;
  AddSample(&run, "m", "c", 0, {RoundOf(1, 0.25)});
  run.samples.back().rounds[0].speedup_vs_reference.reset();  // unknown
  const std::vector<double> fast = Summarise({run}, {})->models[0].fast_reference;
  ASSERT_EQ(fast.size(), 41u);
  EXPECT_NEAR(fast[0], 2.5 / 3, 1e-12);   // every strict pass
  EXPECT_NEAR(fast[1], 1.5 / 3, 1e-12);   // p = 0.05
  EXPECT_NEAR(fast[20], 1.5 / 3, 1e-12);  // p = 1 is reached by what is as fast
  EXPECT_NEAR(fast[21], 0.5 / 3, 1e-12);
  EXPECT_NEAR(fast[40], 0.5 / 3, 1e-12);
}

}  // namespace
}  // namespace allranks::report
