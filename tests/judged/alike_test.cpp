// Windows cannot be told apart from inside. A kernel writes down all that it can find out about
// where and when it is (time, cycles, placement, addresses, heap, latencies of cold caches, what
// memory holds, how often it has been launched); what it writes is compared between windows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/judged/plan.h"

namespace allranks::candidate {
namespace {

using End = wire::JudgeRunReply::End;
using NewsKind = wire::JudgeNews::Kind;

constexpr std::uint32_t kCalls = 6;
constexpr std::size_t kObserved = 4 * 16 * sizeof(std::uint64_t);  // bytes of a rank and call
constexpr std::int64_t kUnit = 1 << 17;  // ps: drawn times are multiples of it on this profile

struct Seen {
  wire::JudgeRunReply reply;
  std::vector<std::vector<std::byte>> outputs;  // by call and rank

  std::uint64_t Word(std::uint32_t call, int rank, std::size_t word) const {
    std::uint64_t value = 0;
    std::memcpy(&value, outputs[call * kWorld + static_cast<std::size_t>(rank)].data() + word * 8,
                sizeof value);
    return value;
  }
};

class Alike : public testing::Test {
 protected:
  Alike() : session(kWorld, {"--check"}) {}
  void SetUp() override {
    wire::JudgePlan plan = PlanOf(kObserve);
    // A second case with memory of its own, to be in the way.
    plan.cases.push_back(plan.cases[0]);
    Prepare(session, plan);
    ASSERT_EQ(session.News().kind, NewsKind::kReady);
    session.KillRanks();
  }

  wire::JudgeRun Burst(std::int64_t begin_ps) {
    wire::JudgeRun run = RunOf(session, kCalls);
    run.check = true;
    run.begin_ps = begin_ps;
    return run;
  }
  static void Disturb(wire::JudgeRun& run, std::uint64_t schedule, std::int64_t from_ps) {
    run.schedule = schedule;
    run.disturbed_from_ps = from_ps;
    for (std::size_t i = 0; i < run.by_rank.size(); ++i)
      run.by_rank[i].delay_ps = static_cast<std::int64_t>((i * 7919 + schedule) % 40) * 500'000;
  }
  Seen Run(const wire::JudgeRun& run) {
    Seen seen;
    const auto reply = session.Call(run);
    EXPECT_TRUE(reply.has_value());
    seen.reply = reply.value_or(wire::JudgeRunReply{});
    EXPECT_EQ(seen.reply.end, End::kDone) << seen.reply.text;
    for (std::uint64_t i = 0; i < kCalls * kWorld; ++i)
      seen.outputs.emplace_back(
          session.out.begin() + static_cast<std::ptrdiff_t>(i * kBytes),
          session.out.begin() + static_cast<std::ptrdiff_t>(i * kBytes + kObserved));
    return seen;
  }

  Session session;
};

TEST_F(Alike, AWindowIsTheSameWhateverRanBeforeIt) {
  const Seen first = Run(Burst(5 * kUnit));
  for (std::uint64_t i = 1; i <= 3; ++i) {
    wire::JudgeRun other = Burst(static_cast<std::int64_t>(i * 1000) * kUnit);
    other.case_index = i % 2;
    Disturb(other, i, static_cast<std::int64_t>(i) * 1'000'000);
    Run(other);
  }
  const Seen again = Run(Burst(5 * kUnit));
  EXPECT_EQ(first.outputs, again.outputs);
  EXPECT_EQ(first.reply.opened_ps, again.reply.opened_ps);
  EXPECT_EQ(first.reply.closed_ps, again.reply.closed_ps);
  EXPECT_EQ(first.Word(0, 0, 7), 1u) << "it counts its launches from 1 in every window";
}

TEST_F(Alike, AReplayIsTheBurstUntilItIsDisturbed) {
  const Seen timed = Run(Burst(77 * kUnit));
  const auto& closed = timed.reply.closed_ps;
  const std::int64_t whole = *std::max_element(closed.begin(), closed.end());
  int differ = 0;
  for (std::uint64_t i = 1; i <= 12; ++i) {
    const std::int64_t from = whole * static_cast<std::int64_t>(i) / 13;
    wire::JudgeRun run = Burst(77 * kUnit);
    Disturb(run, i * 0x9e3779b97f4a7c15u, from);
    const Seen replay = Run(run);
    for (std::size_t k = 0; k < closed.size(); ++k) {
      if (closed[k] >= from) {
        differ += replay.outputs[k] != timed.outputs[k] ? 1 : 0;
        continue;
      }
      EXPECT_EQ(replay.reply.opened_ps[k], timed.reply.opened_ps[k]) << "from " << from;
      EXPECT_EQ(replay.reply.closed_ps[k], closed[k]) << "from " << from;
      EXPECT_EQ(replay.outputs[k], timed.outputs[k]) << "from " << from << ", call and rank " << k;
    }
  }
  EXPECT_GT(differ, 20) << "the replays are not disturbed at all";
}

TEST_F(Alike, NoClockTellsWhichWindowItIs) {
  const Seen a = Run(Burst(0)), b = Run(Burst(123'456 * kUnit + 4711));
  const std::int64_t shift = 123'456 * kUnit / 1000;  // ns; the rest is rounded off
  EXPECT_EQ(a.reply.opened_ps, b.reply.opened_ps);
  EXPECT_EQ(a.reply.closed_ps, b.reply.closed_ps);
  for (std::uint32_t call = 0; call < kCalls; ++call) {
    for (int rank = 0; rank < kWorld; ++rank) {
      const auto later = static_cast<std::int64_t>(b.Word(call, rank, 0) - a.Word(call, rank, 0));
      EXPECT_NEAR(static_cast<double>(later), static_cast<double>(shift), 32.0);  // its ticks
      for (const std::size_t word : {2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 10u, 11u, 12u})
        EXPECT_EQ(a.Word(call, rank, word), b.Word(call, rank, word)) << "word " << word;
    }
  }
  // When a rank enters does not tell whether it was held back: all such times are of one grid.
  wire::JudgeRun late = Burst(0);
  Disturb(late, 0, 0);
  const Seen delayed = Run(late);
  EXPECT_NE(delayed.reply.opened_ps[1], 0);
  EXPECT_EQ(delayed.reply.opened_ps[1] % kUnit, 0);
}

TEST_F(Alike, MemoryOfAnotherCaseIsOutOfReach) {
  wire::JudgePlan plan = PlanOf(kGood);
  plan.cases.push_back(plan.cases[0]);
  // The second case's scratch is asked for by the address of the first one's: the arenas are dense.
  Session other(kWorld);
  Prepare(other, plan);
  ASSERT_EQ(other.News().kind, NewsKind::kReady);
  wire::JudgeRun run = RunOf(other, 2);
  run.case_index = 1;
  const auto reply = other.Call(run);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->end, End::kDone) << reply->text;
  ExpectSums(other, 2);
}

}  // namespace
}  // namespace allranks::candidate
