// More passes or faster ones never lower a score. Pass x GM is shown to lack this.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "report/summary.h"
#include "synthetic.h"

namespace allranks::report {
namespace {

Figures FiguresOfFirst(const campaign::Run& run) {
  Options options;
  options.resamples = 20;
  return Summarise({run}, options)->models[0].all;
}

constexpr double kFails = -1, kUnsupported = -2;

// Fractions by problem, sample and round, or one of these. At least one of each.
using Plan = std::vector<std::vector<std::vector<double>>>;

campaign::Run RunOf(const Plan& plan) {
  campaign::Run run = EmptyRun("run");
  AddModel(&run, "m");
  for (std::size_t p = 0; p < plan.size(); ++p) {
    const std::string slug = "p" + std::to_string(p);
    run.settings.problems.push_back(ProblemNamed(slug, "family" + std::to_string(p / 2)));
    for (std::size_t k = 0; k < plan[p].size(); ++k) {
      std::vector<campaign::Round> rounds;
      for (const double fraction : plan[p][k])
        rounds.push_back(fraction == kUnsupported
                             ? RoundWith(static_cast<int>(rounds.size()) + 1, "unsupported")
                             : RoundOf(static_cast<int>(rounds.size()) + 1, fraction));
      AddSample(&run, "m", slug, static_cast<int>(k), rounds);
    }
  }
  return run;
}

Plan ArbitraryPlan() {
  Plan plan(*rc::gen::inRange<std::size_t>(1, 8));
  for (auto& samples : plan) {
    samples.resize(*rc::gen::inRange<std::size_t>(1, 4));
    for (auto& rounds : samples) {
      rounds.resize(*rc::gen::inRange<std::size_t>(1, 4));
      for (double& fraction : rounds)
        fraction = *rc::gen::inRange(0, 3) == 0 ? -1 : *rc::gen::inRange(0, 130) / 100.0;
    }
  }
  return plan;
}

TEST(Score, NeverFallsWhenARoundPassesOrGetsFaster) {
  EXPECT_TRUE(rc::check([] {
    Plan plan = ArbitraryPlan();
    const Figures before = FiguresOfFirst(RunOf(plan));
    auto& samples = plan[*rc::gen::inRange<std::size_t>(0, plan.size())];
    auto& rounds = samples[*rc::gen::inRange<std::size_t>(0, samples.size())];
    double& fraction = rounds[*rc::gen::inRange<std::size_t>(0, rounds.size())];
    fraction = std::max(fraction, 0.0) + *rc::gen::inRange(0, 100) / 100.0;
    const Figures after = FiguresOfFirst(RunOf(plan));
    constexpr double kRounding = 1e-12;
    RC_ASSERT(after.score.value >= before.score.value - kRounding);
    RC_ASSERT(after.strict_pass.value >= before.strict_pass.value - kRounding);
    RC_ASSERT(after.pass_within.value >= before.pass_within.value - kRounding);
    RC_ASSERT(after.score_within.value >= before.score_within.value - kRounding);
    RC_ASSERT(after.pass_plus_good >= before.pass_plus_good - kRounding);
    for (const auto& [k, value] : before.pass_at)
      RC_ASSERT(after.pass_at.at(k) >= value - kRounding);
    RC_ASSERT(after.score.value <= after.strict_pass.value + kRounding);
    RC_ASSERT(after.strict_pass.value <= after.pass_within.value + kRounding);
    RC_ASSERT(after.score.value <= after.score_within.value + kRounding);
  }));
}

// A further round after a pass, whatever becomes of it, takes nothing away.
TEST(Score, NeverFallsByAFurtherRound) {
  EXPECT_TRUE(rc::check([] {
    Plan plan = ArbitraryPlan();
    const Figures before = FiguresOfFirst(RunOf(plan));
    plan[0][0].push_back(*rc::gen::inRange(-1, 2));
    const Figures after = FiguresOfFirst(RunOf(plan));
    RC_ASSERT(after.strict_pass.value == before.strict_pass.value);
    RC_ASSERT(after.score.value == before.score.value);
    RC_ASSERT(after.pass_within.value >= before.pass_within.value);
    RC_ASSERT(after.score_within.value >= before.score_within.value);
  }));
}

double IfUnsupportedFails(const Plan& plan) {
  Options options;
  options.resamples = 20;
  return Summarise({RunOf(plan)}, options)->models[0].score_if_unsupported_fails;
}

// What is excluded leaves the mean, so a slow pass in its place may lower the score. The figure
// beside it, where unsupported is a failure, is monotone in this too.
TEST(Score, IsMonotoneAcrossExclusionWhereUnsupportedFails) {
  const Plan excluded = {{{1}}, {{kUnsupported}}}, slow = {{{1}}, {{0.2}}};
  EXPECT_DOUBLE_EQ(FiguresOfFirst(RunOf(excluded)).score.value, 1);
  EXPECT_DOUBLE_EQ(FiguresOfFirst(RunOf(slow)).score.value, 0.6);
  EXPECT_DOUBLE_EQ(IfUnsupportedFails(excluded), 0.5);
  EXPECT_DOUBLE_EQ(IfUnsupportedFails(slow), 0.6);
  EXPECT_TRUE(rc::check([] {
    Plan plan = ArbitraryPlan();
    for (auto& samples : plan)
      for (auto& rounds : samples)
        if (*rc::gen::inRange(0, 3) == 0) rounds[0] = kUnsupported;
    const double before = IfUnsupportedFails(plan);
    auto& samples = plan[*rc::gen::inRange<std::size_t>(0, plan.size())];
    auto& rounds = samples[*rc::gen::inRange<std::size_t>(0, samples.size())];
    rounds[0] =
        *rc::gen::inRange(0, 2) == 0 ? std::max(rounds[0], kFails) : std::max(rounds[0], 0.0) + 0.1;
    RC_ASSERT(IfUnsupportedFails(plan) >= before - 1e-12);
    RC_ASSERT(IfUnsupportedFails(plan) <= 1 + 1e-12);
  }));
}

TEST(PassTimesGm, FallsWhenOneMoreProblemPassesSlowly) {
  const Figures before = FiguresOfFirst(RunOf({{{1}}, {{1}}, {{-1}}}));
  const Figures after = FiguresOfFirst(RunOf({{{1}}, {{1}}, {{0.01}}}));
  EXPECT_NEAR(before.pass_x_gm, 2.0 / 3 * 2, 1e-12);  // passes are twice as fast as the reference
  EXPECT_LT(after.pass_x_gm, before.pass_x_gm);
  EXPECT_GT(after.score.value, before.score.value);
  EXPECT_GT(after.strict_pass.value, before.strict_pass.value);
}

}  // namespace
}  // namespace allranks::report
