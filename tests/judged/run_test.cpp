// Judged runs of tests/judged/candidate.cu: what a window of graphs reports, and what a rank cannot
// do. acting_test.cpp has the windows in which ranks act.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "node/checking.h"
#include "tests/judged/plan.h"

namespace allranks {
namespace {

using namespace candidate;
using End = wire::JudgeRunReply::End;
using NewsKind = wire::JudgeNews::Kind;

TEST(JudgedRun, ABurstOfKilledRanksIsRightAndTheSameEveryTime) {
  std::vector<wire::JudgeRunReply> replies;
  for (int repetition = 0; repetition < 2; ++repetition) {
    Session session(kWorld);
    Prepare(session, PlanOf(kGood));
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    session.KillRanks();
    for (const std::uint32_t calls : {1u, 6u}) {
      const wire::JudgeRunReply reply = Burst(session, calls);
      EXPECT_EQ(reply.end, End::kDone) << reply.text;
      ExpectSums(session, calls);
      ASSERT_EQ(reply.opened_ps.size(), calls * kWorld);
      for (std::size_t i = 0; i < reply.opened_ps.size(); ++i) {
        EXPECT_LT(reply.opened_ps[i], reply.closed_ps[i]);
        EXPECT_EQ(reply.changed[i], 0);
        // Back to back: a call opens when the one before has closed on that rank.
        if (i >= kWorld) {
          EXPECT_EQ(reply.opened_ps[i], reply.closed_ps[i - kWorld]);
        }
      }
      // Payload of every call, from each rank once, and flags.
      ASSERT_EQ(reply.moved.size(), 5u);
      EXPECT_GE(reply.moved[0], calls * kWorld * kBytes);
      EXPECT_LT(reply.moved[0], 2 * calls * kWorld * kBytes);
      EXPECT_FALSE(reply.links.empty());
      replies.push_back(reply);
    }
    EXPECT_FALSE(session.HasNews());
  }
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_EQ(replies[i].opened_ps, replies[i + 2].opened_ps);
    EXPECT_EQ(replies[i].closed_ps, replies[i + 2].closed_ps);
    EXPECT_EQ(replies[i].thread_instructions, replies[i + 2].thread_instructions);
  }
}

TEST(JudgedRun, WhatIsFoundComesWithItsWindow) {
  const std::vector<std::string> checked = {"--check"};
  for (const Mode mode : {kGood, kRelaxed}) {
    Session session(kWorld, checked);
    Prepare(session, PlanOf(mode));
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    session.KillRanks();
    wire::JudgeRun run = RunOf(session, 4);
    const auto plain = session.Call(run);
    ASSERT_TRUE(plain.has_value());
    EXPECT_TRUE(plain->findings.empty()) << "nothing was to be looked for";
    run.check = true;
    for (const std::uint64_t schedule : {0, 0, 1, 2}) {
      run.schedule = schedule;
      const auto reply = session.Call(run);
      ASSERT_TRUE(reply.has_value());
      ASSERT_EQ(reply->end, End::kDone) << reply->text;
      if (mode == kGood || schedule == 0) ExpectSums(session, 4);
      if (schedule == 0) {
        EXPECT_EQ(reply->closed_ps, plain->closed_ps) << "looking takes no time";
      }
      if (mode == kGood) {
        EXPECT_TRUE(reply->findings.empty()) << reply->findings[0].text;
        continue;
      }
      ASSERT_FALSE(reply->findings.empty());
      const wire::JudgeFinding& finding = reply->findings[0];
      EXPECT_EQ(finding.kind, 0) << "a race";
      EXPECT_EQ(finding.schedule, schedule);
      ASSERT_EQ(finding.accesses.size(), 2u);
      for (const wire::JudgeAccess& access : finding.accesses) {
        EXPECT_TRUE(access.file.ends_with("candidate.cu")) << access.file;
        EXPECT_GT(access.line, 0);
        EXPECT_GE(access.time_ps, 0);
        EXPECT_LE(access.time_ps,
                  *std::max_element(reply->closed_ps.begin(), reply->closed_ps.end()));
      }
      EXPECT_NE(finding.accesses[0].rank, finding.accesses[1].rank);
      EXPECT_FALSE(finding.missing.empty());
      EXPECT_NE(finding.advice.find("release"), std::string::npos) << finding.advice;
    }
    run.check = false;
    std::int32_t status = 0;
    session.Call(run, &status);
    EXPECT_NE(status, 0) << "a schedule without a checker";
  }
}

TEST(JudgedRun, ADirectedScheduleDelaysOnePlace) {
  Session session(kWorld, {"--check"});
  Prepare(session, PlanOf(kGood));
  ASSERT_EQ(session.News().kind, NewsKind::kReady);
  session.KillRanks();
  wire::JudgeRun run = RunOf(session, 4);
  run.check = run.places = true;
  const auto plain = session.Call(run);
  ASSERT_TRUE(plain.has_value());
  ASSERT_EQ(plain->places.size(), node::kPlaceLevels);
  const std::uint64_t stops = plain->places[1];  // of level 2
  ASSERT_GT(stops, 0u);
  run.places = false;
  const auto again = session.Call(run);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->closed_ps, plain->closed_ps) << "counting takes no time";
  EXPECT_TRUE(again->places.empty());
  const auto last = [](const wire::JudgeRunReply& reply) {
    return *std::max_element(reply.closed_ps.begin(), reply.closed_ps.end());
  };
  std::size_t late = 0;
  for (std::uint64_t place = 1; place <= stops + 1; ++place) {
    run.directed = 2 * node::kDirected + place;
    const auto first = session.Call(run), second = session.Call(run);
    ASSERT_TRUE(first.has_value() && second.has_value());
    ASSERT_EQ(first->end, End::kDone) << first->text;
    EXPECT_TRUE(first->findings.empty()) << first->findings[0].text;
    EXPECT_EQ(first->closed_ps, second->closed_ps);
    ExpectSums(session, 4);
    if (place > stops) {
      EXPECT_EQ(first->closed_ps, plain->closed_ps) << "nobody comes there";
    }
    late += last(*first) > last(*plain) + node::Us(100);
  }
  EXPECT_GT(late, stops / 2);
  std::int32_t status = 0;
  run.schedule = 1;
  session.Call(run, &status);
  EXPECT_NE(status, 0) << "one schedule at a time";
}

TEST(JudgedRun, RanksEndByThemselvesAndDelaysAndDrainsAreKept) {
  Session session(kWorld);
  Prepare(session, PlanOf(kGood));
  ASSERT_EQ(session.News().kind, NewsKind::kReady);
  EXPECT_EQ(session.WaitFor(0), 0);
  EXPECT_EQ(session.WaitFor(0), 0);
  wire::JudgeRun run = RunOf(session, 3);
  constexpr std::int64_t kDelay = 400 << 17;  // ps; delays are whole buckets of time
  run.by_rank[1 * kWorld + 1].delay_ps = kDelay;
  const auto skewed = session.Call(run);
  ASSERT_TRUE(skewed.has_value());
  EXPECT_EQ(skewed->end, End::kDone) << skewed->text;
  EXPECT_EQ(skewed->opened_ps[3], skewed->closed_ps[1] + kDelay);
  EXPECT_GT(skewed->closed_ps[2], skewed->opened_ps[3]);  // rank 0 has waited for it
  run.drain = true;
  const auto drained = session.Call(run);
  ASSERT_TRUE(drained.has_value());
  EXPECT_EQ(drained->end, End::kDone) << drained->text;
  for (std::size_t call = 1; call < 3; ++call)
    for (std::size_t r = 0; r < kWorld; ++r)
      for (std::size_t other = 0; other < kWorld; ++other)
        EXPECT_GE(drained->opened_ps[call * kWorld + r],
                  drained->closed_ps[(call - 1) * kWorld + other]);
  ExpectSums(session, 3);
}

TEST(JudgedRun, SomeWaitsEndLateInASkewedWindow) {
  constexpr std::uint32_t kCalls = 40;
  constexpr std::int64_t kMost = 20'000'000, kNear = 1'500'000;  // ps
  std::vector<std::vector<std::int64_t>> closed;
  for (int repetition = 0; repetition < 2; ++repetition) {
    Session session(kWorld);
    Prepare(session, PlanOf(kGood));
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    wire::JudgeRun run = RunOf(session, kCalls);
    // Rank 0 waits for rank 1 in every call.
    for (std::uint32_t call = 0; call < kCalls; ++call)
      run.by_rank[call * kWorld + 1].delay_ps = 100'000'000;
    const auto reply = session.Call(run);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->end, End::kDone) << reply->text;
    ExpectSums(session, kCalls);
    std::vector<std::int64_t> after;  // the end of rank 0's call, since what it waited for began
    for (std::uint32_t call = 0; call < kCalls; ++call)
      after.push_back(reply->closed_ps[call * kWorld] - reply->opened_ps[call * kWorld + 1]);
    const std::int64_t best = *std::min_element(after.begin(), after.end());
    int late = 0;
    for (const std::int64_t time : after) {
      EXPECT_LE(time, best + kMost + kNear);
      late += time > best + kNear ? 1 : 0;
    }
    // A quarter of them: with forty draws, hardly ever fewer than three or more than twenty.
    EXPECT_GE(late, 3);
    EXPECT_LE(late, 20);
    closed.push_back(reply->closed_ps);
  }
  EXPECT_EQ(closed[0], closed[1]);
}

TEST(JudgedRun, WhatIsNotAllowedInAGraphIsNamed) {
  const std::pair<Mode, const char*> forbidden[] = {
      {kHostNode, "host function"}, {kMemset, "memset"},
      {kWide, "33 x 1 x 1 CTAs"},   {kMalloc, "cudaMalloc is not allowed in the capture"},
      {kCopyOut, "device to host"},
  };
  for (const auto& [mode, words] : forbidden) {
    Session session(kWorld);
    Prepare(session, PlanOf(mode));
    const wire::JudgeNews news = session.News();
    EXPECT_EQ(news.kind, NewsKind::kForbidden) << news.text;
    EXPECT_NE(news.text.find(words), std::string::npos) << news.text;
  }
}

TEST(JudgedRun, AKernelNeedsARule) {
  Session session(kWorld);
  wire::JudgePlan plan = PlanOf(kGood);
  plan.rules.kernels = false;
  Prepare(session, plan);
  const wire::JudgeNews news = session.News();
  EXPECT_EQ(news.kind, NewsKind::kForbidden);
  EXPECT_NE(news.text.find("a kernel is not allowed"), std::string::npos) << news.text;
}

TEST(JudgedRun, RulesAllowWhatTheyName) {
  Session session(kWorld);
  wire::JudgePlan plan = PlanOf(kMemset);
  plan.rules.copies = true;
  plan.rules.max_ctas = 0;
  Prepare(session, plan);
  EXPECT_EQ(session.News().kind, NewsKind::kReady);
}

TEST(JudgedRun, HowAWindowEnds) {
  const std::pair<Mode, End> ends[] = {
      {kSilent, End::kDeadlock}, {kHang, End::kFuel}, {kFault, End::kFault}};
  for (const auto& [mode, end] : ends) {
    Session session(kWorld);
    Prepare(session, PlanOf(mode));
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    const wire::JudgeRunReply reply = Burst(session, 2);
    EXPECT_EQ(reply.end, end) << reply.text;
    EXPECT_FALSE(reply.text.empty());
    if (mode == kSilent) {
      EXPECT_NE(reply.json.find("candidate.cu"), std::string::npos) << reply.json;
    }
    if (mode == kFault) {
      EXPECT_EQ(reply.rank, 1);
    }
  }
}

TEST(JudgedRun, AnInputThatTheCandidateChangesIsSeen) {
  Session session(kWorld);
  wire::JudgePlan plan = PlanOf(kGood);
  // The kernel writes its output where its input is.
  plan.cases[0].fields[1].tensor = kIn;
  Prepare(session, plan);
  ASSERT_EQ(session.News().kind, NewsKind::kReady);
  const wire::JudgeRunReply reply = Burst(session, 1);
  EXPECT_EQ(reply.end, End::kDone) << reply.text;
  EXPECT_EQ(reply.changed, (std::vector<std::uint8_t>{1, 1}));
}

// --- who may speak

TEST(JudgedRun, ASecondClientIsTampering) {
  Session session(kWorld);
  Prepare(session, PlanOf(kGood));
  ASSERT_EQ(session.News().kind, NewsKind::kReady);
  const wire::Fd stranger = session.Connect(1);
  EXPECT_TRUE(wire::SendFrame(stranger.get(), wire::Op::kHello, 1,
                              wire::EncodePayload(wire::RequestHeader{}, wire::Hello{})));
  const wire::JudgeNews news = session.News();
  EXPECT_EQ(news.kind, NewsKind::kTampered);
  EXPECT_EQ(news.rank, 1);
  char byte = 0;
  EXPECT_EQ(recv(stranger.get(), &byte, 1, 0), 0) << "the connection is not closed";
  // The delivered work is not touched by that.
  EXPECT_EQ(Burst(session, 2).end, End::kDone);
  ExpectSums(session, 2);
}

TEST(JudgedRun, ARankThatEndsBeforeItHasDeliveredIsTold) {
  Session session(kWorld);
  std::int32_t status = -1;
  ASSERT_TRUE(session.Call(PlanOf(kGood), &status).has_value());
  for (int r = 0; r < kWorld; ++r) {
    const wire::Fd rank = session.Connect(r);
    EXPECT_TRUE(wire::SendFrame(rank.get(), wire::Op::kHello, 1,
                                wire::EncodePayload(wire::RequestHeader{}, wire::Hello{})));
  }
  EXPECT_EQ(session.News().kind, NewsKind::kLost);
}

TEST(JudgedRun, APlanThatCannotBeIsRefused) {
  Session session(kWorld);
  wire::JudgePlan plan = PlanOf(kGood);
  plan.cases[0].fields[0].tensor = 9;
  std::int32_t status = 0;
  ASSERT_TRUE(session.Call(plan, &status).has_value());
  EXPECT_NE(status, 0);
  plan = PlanOf(kGood);
  plan.cases[0].tensors[kOut].bytes = std::uint64_t{1} << 35;
  ASSERT_TRUE(session.Call(plan, &status).has_value());
  EXPECT_EQ(status, 2);
}

}  // namespace
}  // namespace allranks
