// Two runs against each other.
#include "report/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "synthetic.h"

namespace allranks::report {
namespace {

// `passes[p]` of 2 samples of problem p pass in round 1; two problems to a family.
campaign::Run RunWith(const std::string& name, const std::string& model,
                      const std::vector<int>& passes, double fraction = 1) {
  campaign::Run run = EmptyRun(name);
  run.settings.samples = 2;
  AddModel(&run, model);
  for (std::size_t p = 0; p < passes.size(); ++p) {
    const std::string slug = "p" + std::to_string(p);
    run.settings.problems.push_back(ProblemNamed(slug, "family" + std::to_string(p / 2)));
    for (int k = 0; k < 2; ++k)
      AddSample(&run, model, slug, k, {RoundOf(1, k < passes[p] ? fraction : -1)});
  }
  return run;
}

TEST(Compare, DifferencesAreBLessA) {
  const campaign::Run a = RunWith("old", "m", {2, 1, 0, 0}), b = RunWith("new", "m", {2, 2, 2, 0});
  const Result<Comparison> comparison = Compare(a, b, {}, {});
  ASSERT_TRUE(comparison) << comparison.error().message;
  ASSERT_EQ(comparison->pairs.size(), 1u);
  const Compared& pair = comparison->pairs[0];
  EXPECT_EQ(pair.problems, 4);
  EXPECT_EQ(pair.families, 2);
  EXPECT_EQ(pair.samples_a, 8);
  ASSERT_EQ(pair.metrics.size(), std::size(kMetrics));
  const Compared::Row& pass = pair.metrics[0];
  EXPECT_EQ(pass.metric, Metric::kStrictPass);
  EXPECT_DOUBLE_EQ(pass.a, 0.375);
  EXPECT_DOUBLE_EQ(pass.b, 0.75);
  EXPECT_DOUBLE_EQ(pass.difference.value, 0.375);
  EXPECT_EQ(pass.word, "too few families");
  EXPECT_DOUBLE_EQ(pass.p, 0.5);  // two families that agree
  EXPECT_EQ(pair.by_problem.better, 2);
  EXPECT_EQ(pair.by_problem.equal, 2);
  EXPECT_DOUBLE_EQ(pair.by_problem.p, 0.5);
  EXPECT_EQ(pair.by_family.better, 2);
  ASSERT_EQ(pair.different.size(), 2u);
  EXPECT_EQ(pair.different[0].slug, "p2");  // the larger difference
  EXPECT_EQ(pair.different[1].slug, "p1");
  const std::string table = ToTable(*comparison);
  EXPECT_NE(table.find("B (m) - A (m) is +37.5 points"), std::string::npos) << table;
  EXPECT_NE(table.find(", p = 0.5. 2 families are too few: with"), std::string::npos) << table;
  EXPECT_NE(table.find("p cannot be below 0.05."), std::string::npos);
  EXPECT_NE(table.find("modelled"), std::string::npos);
  EXPECT_NE(ToJson(*comparison).find("\"b_is\": \"too few families\""), std::string::npos);
}

// The largest values of the test that are below 0.05, of all signs and of drawn ones.
TEST(Compare, NoPBelowTheLevelIsShownAsTheLevel) {
  const campaign::Run a = RunWith("a", "m", std::vector<int>(60, 0)),
                      b = RunWith("b", "m", std::vector<int>(60, 2));
  Comparison comparison = *Compare(a, b, {}, {});
  for (const double p : {1638.0 / 32768, 250.0 / 5001}) {
    for (Compared::Row& row : comparison.pairs[0].metrics) row.p = p;
    const std::string table = ToTable(comparison);
    EXPECT_NE(table.find(" 0.04999  better"), std::string::npos) << table;
    EXPECT_NE(table.find("p = 0.04999."), std::string::npos) << table;
  }
  for (Compared::Row& row : comparison.pairs[0].metrics) row.p = 1.0 / 5001;
  EXPECT_NE(ToTable(comparison).find("p < 0.001."), std::string::npos) << ToTable(comparison);
}

TEST(Compare, SaysBetterAndWorseBeyondDoubt) {
  const std::vector<int> none(60, 0), all(60, 2);
  const campaign::Run a = RunWith("a", "m", none), b = RunWith("b", "m", all);
  const Comparison up = *Compare(a, b, {}, {}), down = *Compare(b, a, {}, {});
  for (const Compared::Row& row : up.pairs[0].metrics) EXPECT_EQ(row.word, "better");
  for (const Compared::Row& row : down.pairs[0].metrics) EXPECT_EQ(row.word, "worse");
  EXPECT_LT(up.pairs[0].by_family.p, 1e-6);
  EXPECT_NE(ToTable(down).find("B (m) is worse than A (m) by -100.0 points"), std::string::npos);
  const Comparison same = *Compare(a, a, {}, {});
  EXPECT_TRUE(same.pairs[0].different.empty());
  EXPECT_EQ(same.pairs[0].metrics[0].word, "no difference shown");
  EXPECT_LT(same.pairs[0].metrics[0].difference.low, 0);  // equal, not known to be equal
}

// None of eight against all of eight: a difference where the problems have families of their own,
// though one of them has most of the score; with fewer than six families it cannot be shown, and
// the text says that instead of that nothing was seen.
TEST(Compare, NoneOfEightAgainstAllOfEight) {
  const auto run = [](const std::string& name, int passes, int families) {
    campaign::Run made = RunWith(name, name, std::vector<int>(8, passes));
    double fraction = 1;
    for (std::size_t p = 0; p < 8; ++p) {
      made.settings.problems[p].family =
          "family" + std::to_string(p % static_cast<std::size_t>(families));
      for (std::size_t k = 0; passes > 0 && k < 2; ++k)
        made.samples[2 * p + k].rounds[0].score = fraction;
      fraction *= 0.5;
    }
    return made;
  };
  for (const int families : {8, 6, 5, 1}) {
    const Comparison comparison =
        *Compare(run("nop", 0, families), run("oracle", 2, families), {}, {});
    const Compared& pair = comparison.pairs[0];
    EXPECT_EQ(pair.families, families);
    for (const Compared::Row& row : pair.metrics) {
      EXPECT_EQ(row.word, families >= 6 ? "better" : "too few families") << NameOf(row.metric);
      EXPECT_NEAR(row.p, std::pow(2, 1 - families), 1e-12) << NameOf(row.metric);
      EXPECT_EQ(row.difference.low > 0, families >= 6) << NameOf(row.metric);
    }
    EXPECT_NEAR(pair.by_problem.p, 2.0 / 256, 1e-12);
    EXPECT_EQ(ToTable(comparison).find("no difference"), std::string::npos);
  }
}

// A small gain everywhere is shown, though the rates' own intervals overlap by far.
TEST(Compare, PairingFindsWhatIntervalsOfRatesHide) {
  std::vector<int> passes(60, 0);
  for (std::size_t p = 0; p < 30; ++p) passes[p] = 2;
  const Comparison comparison =
      *Compare(RunWith("a", "m", passes, 0.5), RunWith("b", "m", passes, 0.52), {}, {});
  EXPECT_EQ(comparison.pairs[0].metrics[0].word, "no difference shown");
  EXPECT_EQ(comparison.pairs[0].metrics[1].metric, Metric::kScore);
  EXPECT_EQ(comparison.pairs[0].metrics[1].word, "better");
  EXPECT_NEAR(comparison.pairs[0].metrics[1].difference.value, 0.01, 1e-12);
}

// Ten problems of one family are one piece of evidence.
TEST(Compare, AFamilyCountsAsOne) {
  const std::vector<int> none(20, 0);
  std::vector<int> half(20, 0);
  for (std::size_t p = 0; p < 20; p += 2) half[p] = 2;
  campaign::Run a = RunWith("a", "m", none), b = RunWith("b", "m", half);
  EXPECT_EQ(Compare(a, b, {}, {})->pairs[0].metrics[1].word, "better");
  for (campaign::Run* run : {&a, &b})
    for (std::size_t p = 0; p < 20; p += 2) run->settings.problems[p].family = "one";
  const Compared pair = Compare(a, b, {}, {})->pairs[0];
  EXPECT_EQ(pair.families, 11);
  EXPECT_EQ(pair.metrics[1].word, "no difference shown");
  EXPECT_LT(pair.by_problem.p, 0.05);
  EXPECT_EQ(pair.by_family.p, 1);
  b.settings.name = "b";
  b.settings.models[0].name = "n";
  for (campaign::Sample& sample : b.samples) sample.model = "n";
  const Summary summary = *Summarise({a, b}, {});
  EXPECT_EQ(summary.models[1].rank_group, 1);
  EXPECT_LT(summary.pairs[0].score.low, 0);
}

// Being right counts first; speed orders those who are equally right.
TEST(Compare, RanksByStrictPassThenByScore) {
  const std::vector<int> all(60, 2);
  std::vector<int> half(60, 0);
  for (std::size_t p = 0; p < 60; p += 2) half[p] = 2;
  const Summary summary = *Summarise({RunWith("a", "quick half", half, 1.0),
                                      RunWith("b", "slow", all, 0.2), RunWith("c", "quick", all)},
                                     {});
  ASSERT_EQ(summary.models.size(), 3u);
  EXPECT_EQ(summary.models[0].label, "quick");
  EXPECT_EQ(summary.models[0].rank_group, 1);
  EXPECT_EQ(summary.models[1].label, "slow");
  EXPECT_EQ(summary.models[1].rank_group, 2);
  EXPECT_EQ(summary.models[2].label, "quick half");  // although its score is higher
  EXPECT_EQ(summary.models[2].rank_group, 3);
}

TEST(Compare, PairsModelsByNameOrAsTold) {
  campaign::Run a = RunWith("a", "m", {2, 0}), b = RunWith("b", "n", {2, 2});
  EXPECT_EQ(Compare(a, b, {}, {})->pairs[0].model_b, "n");  // the only one of each
  AddModel(&b, "o");
  const Result<Comparison> unclear = Compare(a, b, {}, {});
  ASSERT_FALSE(unclear);
  EXPECT_NE(unclear.error().message.find("--models A B"), std::string::npos);
  EXPECT_NE(unclear.error().message.find("n, o"), std::string::npos);
  EXPECT_EQ(Compare(a, b, {"m", "n"}, {})->pairs.size(), 1u);
  EXPECT_FALSE(Compare(a, b, {"n", "m"}, {}));
  AddModel(&a, "o");
  const Result<Comparison> common = Compare(a, b, {}, {});
  ASSERT_TRUE(common);
  ASSERT_EQ(common->pairs.size(), 1u);
  EXPECT_EQ(common->pairs[0].model_a, "o");
  EXPECT_EQ(common->pairs[0].problems, 0);  // it has no samples
  EXPECT_NE(ToTable(*common).find("nothing to compare"), std::string::npos);
}

TEST(Compare, LeavesOutWhatIsNotTheSame) {
  campaign::Run a = RunWith("a", "m", {2, 0, 1, 1}), b = RunWith("b", "m", {2, 2, 1});
  b.settings.problems[1].hash = "another wording";
  b.settings.problems.push_back(ProblemNamed("new", "new"));
  AddSample(&b, "m", "new", 0, {RoundOf(1, 1)});
  b.samples[5].rounds[0] = RoundWith(1, "internal_error");  // of p2
  b.settings.profile_hash = "another";
  b.unfinished.push_back({"m", "new", 1, "stopped"});
  const Comparison comparison = *Compare(a, b, {}, {});
  const Compared& pair = comparison.pairs[0];
  EXPECT_EQ(pair.problems, 2);
  EXPECT_EQ(pair.only_a, 1);
  EXPECT_EQ(pair.only_b, 1);
  EXPECT_EQ(pair.reworded, 1);
  EXPECT_EQ(pair.samples_b, 3);
  ASSERT_GE(comparison.notes.size(), 2u);
  EXPECT_NE(comparison.notes[0].find("different profiles"), std::string::npos);
  EXPECT_NE(comparison.notes[0].find("only passes"), std::string::npos);
  EXPECT_NE(comparison.notes.back().find("unfinished"), std::string::npos);
}

}  // namespace
}  // namespace allranks::report
