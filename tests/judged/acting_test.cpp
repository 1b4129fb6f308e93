// Judged runs of tests/judged/candidate.cu in which ranks live on and act: windows of streams and
// of hosts.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/judged/plan.h"

namespace allranks {
namespace {

using namespace candidate;
using End = wire::JudgeRunReply::End;
using NewsKind = wire::JudgeNews::Kind;

TEST(JudgedRun, AStreamWindowOfLivingRanks) {
  std::vector<wire::JudgeRunReply> replies;
  for (int repetition = 0; repetition < 2; ++repetition) {
    Session session(kWorld);
    Prepare(session, PlanOf(kGood, wire::JudgeWindow::kStream));
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    for (const bool drain : {false, true}) {
      const wire::JudgeRunReply reply = Burst(session, 4, drain);
      EXPECT_EQ(reply.end, End::kDone) << reply.text;
      ExpectSums(session, 4);
      for (std::size_t i = 0; i < reply.opened_ps.size(); ++i)
        EXPECT_LT(reply.opened_ps[i], reply.closed_ps[i]);
      for (std::size_t i = kWorld; drain && i < reply.opened_ps.size(); ++i)
        for (std::size_t r = 0; r < kWorld; ++r)
          EXPECT_GE(reply.opened_ps[i], reply.closed_ps[i / kWorld * kWorld - kWorld + r]);
      replies.push_back(reply);
    }
    EXPECT_FALSE(session.HasNews());
  }
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_EQ(replies[i].opened_ps, replies[i + 2].opened_ps);
    EXPECT_EQ(replies[i].closed_ps, replies[i + 2].closed_ps);
  }
}

TEST(JudgedRun, HowAStreamWindowEnds) {
  const std::pair<Mode, End> ends[] = {{kSilent, End::kDeadlock},
                                       {kFault, End::kFault},
                                       {kCopyOut, End::kForbidden},
                                       {kMalloc, End::kForbidden}};
  for (const auto& [mode, end] : ends) {
    Session session(kWorld);
    Prepare(session, PlanOf(mode, wire::JudgeWindow::kStream));
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    const wire::JudgeRunReply reply = Burst(session, 2);
    EXPECT_EQ(reply.end, end) << reply.text;
    EXPECT_FALSE(reply.text.empty());
  }
}

TEST(JudgedRun, AQueryIsAnsweredByRankZero) {
  Session session(kWorld);
  Prepare(session, PlanOf(kGood, wire::JudgeWindow::kQuery));
  ASSERT_EQ(session.News().kind, NewsKind::kReady);
  const wire::JudgeRunReply reply = Burst(session, 1);
  EXPECT_EQ(reply.end, End::kDone) << reply.text;
  ASSERT_EQ(reply.answer.size(), sizeof(int));
  int answer = 0;
  std::memcpy(&answer, reply.answer.data(), sizeof answer);
  EXPECT_EQ(answer, 7);
}

wire::JudgeRun Talk(std::uint32_t calls) {
  wire::JudgeRun run;
  run.calls = calls;
  for (std::uint32_t i = 0; i < calls * kWorld; ++i) {
    wire::JudgeCall& one = run.by_rank.emplace_back();
    one.poison.push_back({kOut, kPoison});
    one.poison.push_back({kTold, kPoison});
    one.keep.push_back({kOut, i * 1'024, 4});
    one.keep.push_back({kTold, i * 1'024 + 4, kToldBytes});
  }
  return run;
}

TEST(JudgedRun, AHostWindowHasTheTimeOfItsHostCode) {
  constexpr std::uint32_t kCalls = 3;
  std::vector<wire::JudgeRunReply> replies;
  for (int repetition = 0; repetition < 2; ++repetition) {
    Session session(kWorld);
    Prepare(session, PlanOf(kTalk, wire::JudgeWindow::kHost));
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    const auto reply = session.Call(Talk(kCalls));
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->end, End::kDone) << reply->text;
    for (std::uint32_t i = 0; i < kCalls * kWorld; ++i) {
      const std::uint32_t turn = i / kWorld + 1;
      float out = 0;
      unsigned told[kToldBytes / 4] = {};
      std::memcpy(&out, session.out.data() + i * 1'024, sizeof out);
      std::memcpy(told, session.out.data() + i * 1'024 + 4, kToldBytes);
      EXPECT_EQ(out, static_cast<float>(turn));
      EXPECT_EQ(told[0], turn * 10);
      EXPECT_EQ(told[1], 0u);
      EXPECT_EQ(told[100], turn * 10);
      // Two ways over PCIe, and then seven lines of told and five more accesses at 20 ns.
      EXPECT_GT(reply->closed_ps[i] - reply->opened_ps[i], 1'500'000);
    }
    replies.push_back(*reply);
  }
  EXPECT_EQ(replies[0].opened_ps, replies[1].opened_ps);
  EXPECT_EQ(replies[0].closed_ps, replies[1].closed_ps);
}

TEST(JudgedRun, CopiesOfAFixedSizeAreAccessesOfTheHost) {
  for (const Mode mode : {kTalkWell, kTalkPeeks}) {
    Session session(kWorld, {"--check"});
    Prepare(session, PlanOf(mode, wire::JudgeWindow::kHost));
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    wire::JudgeRun run = Talk(2);
    run.check = true;
    const auto reply = session.Call(run);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->end, End::kDone) << reply->text;
    EXPECT_EQ(reply->findings.empty(), mode == kTalkWell);
    for (const wire::JudgeFinding& finding : reply->findings)
      EXPECT_EQ(finding.kind, 0) << "a race: " << finding.text;
  }
}

// No kernel runs, so what is late is the host.
TEST(JudgedRun, HostsStopNowAndThenUnderASchedule) {
  constexpr std::int64_t kMost = 10'000'000;  // ps
  std::vector<std::vector<std::int64_t>> closed;
  for (int repetition = 0; repetition < 2; ++repetition) {
    Session session(kWorld, {"--check"});
    Prepare(session, PlanOf(kHostAlone, wire::JudgeWindow::kHost));
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    int late_of_all = 0, calls = 0;
    for (std::uint64_t schedule = 0; schedule < 4; ++schedule) {
      wire::JudgeRun run = Talk(4);
      run.check = true;
      run.schedule = schedule;
      const auto reply = session.Call(run);
      ASSERT_TRUE(reply.has_value());
      EXPECT_EQ(reply->end, End::kDone) << reply->text;
      EXPECT_TRUE(reply->findings.empty()) << reply->findings[0].text;
      int late = 0;
      for (std::size_t i = 0; i < reply->opened_ps.size(); ++i, ++calls)
        late += reply->closed_ps[i] - reply->opened_ps[i] > kMost ? 1 : 0;
      if (schedule == 0) {
        EXPECT_EQ(late, 0);
      }
      late_of_all += late;
      closed.push_back(reply->closed_ps);
    }
    EXPECT_GT(late_of_all, 0);
    EXPECT_LT(late_of_all, calls);
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(closed[i], closed[i + 4]) << "schedule " << i;
}

TEST(JudgedRun, HowAHostWindowEnds) {
  const std::pair<Mode, End> ends[] = {
      {kTalkAlone, End::kDeadlock}, {kTalkToNobody, End::kDeadlock}, {kTalkTold, End::kFault}};
  for (const auto& [mode, end] : ends) {
    Session session(kWorld);
    Prepare(session, PlanOf(mode, wire::JudgeWindow::kHost));
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    const auto reply = session.Call(Talk(1));
    ASSERT_TRUE(reply.has_value()) << "mode " << mode;
    EXPECT_EQ(reply->end, end) << reply->text;
  }
}

}  // namespace
}  // namespace allranks
