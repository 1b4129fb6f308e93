// Calls that are asked for one by one, as those of large cases: they follow each other in one copy
// of the node, and their inputs and outputs are mapped instead of copied.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/judged/plan.h"

namespace allranks::candidate {
namespace {

using End = wire::JudgeRunReply::End;
using NewsKind = wire::JudgeNews::Kind;

// More than the node copies, and not whole pages.
constexpr std::int64_t kMany = 1'200'007;
constexpr std::uint64_t kManyBytes = kMany * sizeof(float);
constexpr std::uint64_t kPlace = 8 << 20;  // from one rank's bytes to the next one's

wire::JudgePlan LargePlan(Mode mode) {
  wire::JudgePlan plan = PlanOf(mode);
  wire::JudgeCase& one = plan.cases[0];
  std::memcpy(one.args.data() + offsetof(Args, n), &kMany, sizeof kMany);
  one.tensors[kIn].bytes = one.tensors[kOut].bytes = kManyBytes;
  one.tensors[kScratch].bytes = 64 + 2 * kManyBytes;
  return plan;
}

// Of one call; every call's inputs and outputs are in the same place.
wire::JudgeRun LargeRun(Session& session, std::uint32_t call) {
  wire::JudgeRun run;
  run.calls = 1;
  run.fuel = 1'000'000'000;
  for (int r = 0; r < kWorld; ++r)
    AddCall(session, call, r, static_cast<std::uint64_t>(r) * kPlace, kMany, &run);
  return run;
}

std::int64_t WrongSums(const Session& session, std::uint32_t call) {
  std::int64_t wrong = 0;
  for (int r = 0; r < kWorld; ++r) {
    for (std::int64_t i = 0; i < kMany; ++i) {
      float value = 0;
      std::memcpy(&value,
                  session.out.data() + static_cast<std::uint64_t>(r) * kPlace +
                      static_cast<std::uint64_t>(i) * 4,
                  4);
      wrong += value != Value(call, 0, i) + Value(call, 1, i) ? 1 : 0;
    }
  }
  return wrong;
}

TEST(LargeCalls, FollowEachOtherOnInputsOfTheirOwn) {
  Session session(kWorld);
  Prepare(session, LargePlan(kGood));
  ASSERT_EQ(session.News().kind, NewsKind::kReady);
  session.KillRanks();
  constexpr std::uint32_t kCalls = 3;
  for (int window = 0; window < 2; ++window) {
    for (std::uint32_t call = 0; call < kCalls; ++call) {
      wire::JudgeRun run = LargeRun(session, call + static_cast<std::uint32_t>(window));
      run.goes_on = call != 0;
      run.stays = call + 1 < kCalls;
      std::int32_t status = -1;
      const auto reply = session.Call(run, &status);
      ASSERT_TRUE(reply.has_value());
      ASSERT_EQ(status, 0);
      EXPECT_EQ(reply->end, End::kDone) << reply->text;
      EXPECT_EQ(reply->changed, (std::vector<std::uint8_t>{0, 0}));
      EXPECT_EQ(WrongSums(session, call + static_cast<std::uint32_t>(window)), 0);
    }
  }
}

TEST(LargeCalls, AnInputThatIsMappedAndChangedIsSeen) {
  Session session(kWorld);
  wire::JudgePlan plan = LargePlan(kGood);
  plan.cases[0].fields[1].tensor = kIn;  // the kernel's output
  Prepare(session, plan);
  ASSERT_EQ(session.News().kind, NewsKind::kReady);
  const auto reply = session.Call(LargeRun(session, 0));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->changed, (std::vector<std::uint8_t>{1, 1}));
  float first = 0;
  std::memcpy(&first, session.in.data(), sizeof first);
  EXPECT_EQ(first, Value(0, 0, 0)) << "the judge's file is changed";
}

// What the first has counted the second goes on with; the next window begins anew.
TEST(LargeCalls, AreOneWindow) {
  Session session(kWorld);
  Prepare(session, PlanOf(kObserve));
  ASSERT_EQ(session.News().kind, NewsKind::kReady);
  session.KillRanks();
  const auto launches = [&](bool goes_on, bool stays) {
    wire::JudgeRun run = RunOf(session, 1);
    run.goes_on = goes_on;
    run.stays = stays;
    const auto reply = session.Call(run);
    EXPECT_TRUE(reply.has_value() && reply->end == End::kDone);
    std::uint64_t count = 0;
    std::memcpy(&count, session.out.data() + 7 * sizeof count, sizeof count);
    return count;
  };
  EXPECT_EQ(launches(false, true), 1u);
  EXPECT_EQ(launches(true, true), 2u);
  EXPECT_EQ(launches(true, false), 3u);
  EXPECT_EQ(launches(false, false), 1u);
}

TEST(LargeCalls, NothingElseMayComeInBetween) {
  constexpr std::int32_t kInvalidValue = 1;
  Session session(kWorld);
  Prepare(session, PlanOf(kGood));
  ASSERT_EQ(session.News().kind, NewsKind::kReady);
  session.KillRanks();
  std::int32_t status = -1;
  wire::JudgeRun run = RunOf(session, 1);
  run.goes_on = true;
  ASSERT_TRUE(session.Call(run, &status).has_value());
  EXPECT_EQ(status, kInvalidValue) << "there is nothing to go on from";
  run.goes_on = false;
  run.stays = true;
  ASSERT_TRUE(session.Call(run, &status).has_value());
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(session.Call(run, &status).has_value());
  EXPECT_EQ(status, kInvalidValue) << "another window would begin where this one has stayed";
}

}  // namespace
}  // namespace allranks::candidate
