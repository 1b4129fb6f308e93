// The conservative rule, without sockets or devices: the transitions of hosts.h one by one.
#include "node/hosts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace allranks::node {
namespace {

// Everything that was handled, in order.
struct Entry {
  Time at;
  HostThread thread;
  int step;
  auto operator<=>(const Entry&) const = default;
};

class HostsTest : public ::testing::Test {
 protected:
  Hosts::Events Events() {
    return {[this](HostThread thread, Time at) { ended.emplace_back(thread, at); },
            [this](std::int32_t rank, Time at) { processes_ended.emplace_back(rank, at); }};
  }
  // A request that is answered at once.
  void Ask(HostThread thread, Time cost) {
    ASSERT_TRUE(hosts.Request(thread, cost, "ask", [this, thread](Time at) {
      log.push_back({at, thread, 0});
      hosts.Resume(thread);
    }));
  }
  void AskAndWait(HostThread thread, Time cost, bool outside = false) {
    ASSERT_TRUE(hosts.Request(thread, cost, "wait", [this, thread, outside](Time) {
      hosts.Wait(thread, "wait", outside);
    }));
  }
  HostThread Start(std::int32_t rank) {
    HostThread thread = hosts.AddThread(rank);
    EXPECT_TRUE(hosts.Request(thread, 0, "hello", [this, thread](Time) { hosts.Resume(thread); }));
    return thread;
  }

  std::vector<std::pair<HostThread, Time>> ended;
  std::vector<std::pair<std::int32_t, Time>> processes_ended;
  std::vector<Entry> log;
  Hosts hosts{Hosts::Options{}, Events()};
};

TEST_F(HostsTest, RanksAndThreadsCountUp) {
  EXPECT_EQ(hosts.AddProcess(), 0);
  EXPECT_EQ(hosts.AddProcess(), 1);
  EXPECT_EQ(hosts.AddThread(1), (HostThread{1, 1}));
  EXPECT_EQ(hosts.AddThread(0), (HostThread{0, 1}));
  EXPECT_EQ(hosts.AddThread(1), (HostThread{1, 2}));
  EXPECT_EQ(hosts.ThreadCount(1), 2);
}

TEST_F(HostsTest, ARunningThreadHoldsTheClock) {
  const HostThread a = Start(hosts.AddProcess());
  const HostThread b = Start(hosts.AddProcess());
  hosts.Process();  // a runs
  ASSERT_TRUE(hosts.Held());
  Ask(a, Ns(5));
  EXPECT_FALSE(hosts.Held());
  hosts.Process();  // b, at 0, comes before a's request
  EXPECT_TRUE(hosts.Held());
  EXPECT_TRUE(log.empty());
  EXPECT_EQ(hosts.now(), 0);
  Ask(b, Ns(10));
  hosts.Process();
  EXPECT_EQ(log, (std::vector<Entry>{{Ns(5), a, 0}}));
  EXPECT_TRUE(hosts.Held());
}

TEST_F(HostsTest, AWaitingThreadDoesNot) {
  const HostThread a = Start(hosts.AddProcess());
  const HostThread b = Start(hosts.AddProcess());
  hosts.Process();
  AskAndWait(a, Ns(1));
  hosts.Process();
  Ask(b, Ns(7));
  hosts.Process();  // a waits
  hosts.Process();  // b
  EXPECT_EQ(log, (std::vector<Entry>{{Ns(7), b, 0}}));
  Ask(b, Ns(1));
  hosts.Process();
  EXPECT_EQ(hosts.now(), Ns(8));
}

TEST_F(HostsTest, TiesGoByRankThenThread) {
  const std::int32_t p = hosts.AddProcess(), q = hosts.AddProcess();
  const HostThread q1 = hosts.AddThread(q), p1 = hosts.AddThread(p), p2 = hosts.AddThread(p);
  std::vector<HostThread> order;
  for (HostThread thread : {q1, p2, p1})
    hosts.Request(thread, Ns(3), "x", [&, thread](Time) {
      order.push_back(thread);
      hosts.Wait(thread, "x", false);
    });
  while (hosts.Due()) hosts.Process();
  EXPECT_EQ(order, (std::vector<HostThread>{p1, p2, q1}));
}

TEST_F(HostsTest, ChildrenInheritTheClock) {
  const std::int32_t p = hosts.AddProcess();
  const HostThread a = Start(p);
  hosts.Process();
  HostThread child;
  hosts.Request(a, Us(3), "new_thread", [&](Time) {
    child = hosts.AddThread(p);
    hosts.Resume(a);
  });
  hosts.Process();
  Ask(a, Us(100));
  EXPECT_TRUE(hosts.Held()) << "the child is expected";
  Ask(child, 0);
  hosts.Process();
  EXPECT_EQ(log, (std::vector<Entry>{{Us(3), child, 0}}));
}

TEST_F(HostsTest, OnlyTheEarliestWakeUpCounts) {
  const HostThread a = Start(hosts.AddProcess());
  hosts.Process();
  AskAndWait(a, Ns(1));
  hosts.Process();
  std::string by;
  auto wake = [&](std::string name) {
    return [&, name](Time) {
      by += name;
      hosts.Resume(a);
    };
  };
  EXPECT_TRUE(hosts.WakeAt(a, Us(10), wake("timeout")));
  EXPECT_TRUE(hosts.WakeAt(a, Us(4), wake("event")));
  EXPECT_FALSE(hosts.WakeAt(a, Us(4), wake("late")));
  hosts.Process();
  EXPECT_EQ(by, "event");
  EXPECT_EQ(hosts.now(), Us(4));
  EXPECT_FALSE(hosts.Due());
  EXPECT_FALSE(hosts.WakeAt(a, Us(5), wake("running")));
}

TEST_F(HostsTest, AnExitIsOrderedLikeARequest) {
  const std::int32_t p = hosts.AddProcess();
  const HostThread a = Start(p), b = Start(hosts.AddProcess());
  hosts.Process();
  hosts.Gone(a);
  EXPECT_TRUE(processes_ended.empty());
  hosts.Process();  // b runs
  Ask(b, Us(1));
  hosts.Process();  // the exit
  ASSERT_EQ(processes_ended.size(), 1u);
  EXPECT_EQ(processes_ended[0], (std::pair{p, Ns(1)}));
  EXPECT_EQ(ended[0].first, a);
}

TEST_F(HostsTest, TimeStandsStillWhileAProcessCloses) {
  const std::int32_t p = hosts.AddProcess();
  const HostThread main = Start(p), worker = Start(p), other = Start(hosts.AddProcess());
  hosts.Process();
  AskAndWait(main, Ns(1));
  hosts.Process();
  AskAndWait(worker, Ns(1));
  hosts.Process();
  Ask(other, Us(1));
  hosts.Process();
  hosts.Process();
  EXPECT_FALSE(hosts.Held());
  hosts.Gone(worker);
  EXPECT_TRUE(hosts.Held()) << "one connection is still open";
  hosts.Gone(main);
  EXPECT_FALSE(hosts.Held());
  EXPECT_EQ(processes_ended, (std::vector<std::pair<std::int32_t, Time>>{{p, Ns(1)}}));
  EXPECT_EQ(hosts.ThreadCount(p), 0);
}

TEST_F(HostsTest, TimeStandsStillFromTheFirstSignOfAnEnd) {
  const std::int32_t p = hosts.AddProcess();
  const HostThread a = Start(p), other = Start(hosts.AddProcess());
  hosts.Process();
  AskAndWait(a, Ns(1));
  hosts.Process();
  Ask(other, Us(1));
  hosts.Process();
  hosts.Closing(a);
  EXPECT_TRUE(hosts.Held()) << "its pipes may still be open";
  EXPECT_TRUE(processes_ended.empty());
  hosts.Gone(a);
  EXPECT_FALSE(hosts.Held());
  EXPECT_EQ(processes_ended.size(), 1u);
  EXPECT_TRUE(hosts.deterministic());
}

TEST_F(HostsTest, AThreadThatClosesWithoutAWordIsLost) {
  const std::int32_t p = hosts.AddProcess();
  const HostThread a = Start(p), b = Start(p);
  hosts.Process();
  AskAndWait(a, Ns(1));
  hosts.Process();
  AskAndWait(b, Ns(1));
  hosts.Process();
  hosts.Closing(a);
  hosts.Tick(0);
  EXPECT_TRUE(hosts.Held());
  EXPECT_TRUE(hosts.Tick(5'000));
  EXPECT_FALSE(hosts.Held());
  EXPECT_FALSE(hosts.deterministic());
  EXPECT_EQ(hosts.ThreadCount(p), 1);
}

TEST_F(HostsTest, AnAnnouncedThreadDiesWithItsProcess) {
  const std::int32_t p = hosts.AddProcess();
  const HostThread a = Start(p);
  hosts.Process();
  hosts.Request(a, Ns(1), "new_thread", [&](Time) {
    hosts.AddThread(p);
    hosts.Resume(a);
  });
  hosts.Gone(a);
  hosts.Process();
  EXPECT_EQ(hosts.ThreadCount(p), 1);
  EXPECT_FALSE(hosts.Held());
  hosts.Process();
  EXPECT_TRUE(hosts.Empty());
  EXPECT_EQ(processes_ended.size(), 1u);
}

constexpr std::optional<std::uint64_t> kAwake, kSlept = 1;

TEST_F(HostsTest, BlockedThreadsHoldNobodyUpUntilTheyAreWoken) {
  const std::int32_t rank = hosts.AddProcess();
  const HostThread worker = Start(rank);
  hosts.Process();
  AskAndWait(worker, Ns(1));
  const HostThread sleeper = Start(rank), other = Start(rank);
  hosts.Process();
  EXPECT_FALSE(hosts.Block([](HostThread) { return kAwake; }));
  EXPECT_TRUE(hosts.Held());
  EXPECT_TRUE(hosts.Block([&](HostThread thread) { return thread == sleeper ? kSlept : kAwake; }));
  EXPECT_FALSE(hosts.Held());
  hosts.Process();
  EXPECT_TRUE(hosts.Block([](HostThread) { return kSlept; }));
  hosts.Process();
  EXPECT_TRUE(hosts.AllWaitForNode());
  EXPECT_TRUE(hosts.NobodyActs());
  // The worker goes on and wakes one of them, by no message.
  ASSERT_TRUE(hosts.WakeAt(worker, Ns(50), [&](Time) { hosts.Resume(worker); }));
  hosts.Process();
  AskAndWait(worker, Ns(10));
  EXPECT_TRUE(hosts.Recheck([&](HostThread thread) { return thread == other ? kSlept : kAwake; }));
  EXPECT_TRUE(hosts.Held());
  EXPECT_FALSE(hosts.Recheck([&](HostThread thread) { return thread == other ? kSlept : kAwake; }));
  Ask(sleeper, Ns(5));
  hosts.Process();
  EXPECT_EQ(log, (std::vector<Entry>{{Ns(55), sleeper, 0}}));
  EXPECT_TRUE(hosts.deterministic());
  hosts.Gone(other);
  EXPECT_FALSE(hosts.Has(other));
}

TEST_F(HostsTest, ThreadsThatWakeEachOtherWhileLookedAtAreNotBlocked) {
  const std::int32_t rank = hosts.AddProcess();
  const HostThread first = Start(rank);
  hosts.Process();
  AskAndWait(first, Ns(1));
  hosts.Process();
  const HostThread second = Start(rank);
  hosts.Process();
  hosts.Resume(first);
  // Both are seen asleep each time, but `second` wakes `first` before it is itself looked at.
  std::uint64_t woken = 0;
  const auto asleep = [&](HostThread thread) -> std::optional<std::uint64_t> {
    if (thread == second) ++woken;
    return thread == first ? woken : 0;
  };
  EXPECT_FALSE(hosts.Block(asleep));
  EXPECT_TRUE(hosts.Held());
  ASSERT_TRUE(hosts.Block([](HostThread) { return kSlept; }));
  EXPECT_TRUE(hosts.Recheck(asleep));
  EXPECT_TRUE(hosts.Held());
}

TEST_F(HostsTest, SilenceDetachesAndIsRecorded) {
  const HostThread a = Start(hosts.AddProcess());
  const HostThread b = Start(hosts.AddProcess());
  hosts.Process();
  AskAndWait(a, Ns(1));
  hosts.Process();  // b runs, and says nothing
  EXPECT_FALSE(hosts.Tick(1'000));
  EXPECT_FALSE(hosts.Tick(3'900));
  EXPECT_TRUE(hosts.deterministic());
  EXPECT_TRUE(hosts.Tick(4'000));
  EXPECT_FALSE(hosts.deterministic());
  EXPECT_FALSE(hosts.Held());
  EXPECT_TRUE(hosts.AnyDetached());
  hosts.Process();
  hosts.AdvanceTo(Us(50));
  Ask(b, Ns(2));  // rejoins at now
  EXPECT_FALSE(hosts.AnyDetached());
  hosts.Process();
  EXPECT_EQ(log, (std::vector<Entry>{{Us(50) + Ns(2), b, 0}}));
}

TEST_F(HostsTest, AloneNobodyIsHeldUp) {
  Start(hosts.AddProcess());
  hosts.Process();
  EXPECT_FALSE(hosts.Tick(0));
  EXPECT_FALSE(hosts.Tick(1'000'000));
  EXPECT_TRUE(hosts.deterministic());
}

TEST_F(HostsTest, DeadlockNeedsEverybody) {
  const HostThread a = Start(hosts.AddProcess()), b = Start(hosts.AddProcess());
  hosts.Process();
  EXPECT_FALSE(hosts.AllWaitForNode());
  AskAndWait(a, Ns(1));
  hosts.Process();
  AskAndWait(b, Ns(1), /*outside=*/true);
  EXPECT_FALSE(hosts.AllWait());
  hosts.Process();
  hosts.Process();
  EXPECT_TRUE(hosts.AllWait());
  EXPECT_FALSE(hosts.AllWaitForNode()) << "b may be ended from outside";
  hosts.WakeAt(b, Us(1), [&](Time) { hosts.Wait(b, "again", false); });
  EXPECT_FALSE(hosts.AllWait()) << "a wake-up is due";
  hosts.Process();
  EXPECT_TRUE(hosts.AllWaitForNode());
}

TEST_F(HostsTest, PollersCountAsWaitingAfterAWhile) {
  const HostThread a = Start(hosts.AddProcess()), b = Start(hosts.AddProcess());
  hosts.Process();
  AskAndWait(a, Ns(1));
  hosts.Process();
  auto poll = [&](Hosts::Activity activity) {
    hosts.Request(b, Us(1), "query", [&, activity](Time) {
      hosts.Note(b, activity);
      hosts.Resume(b);
    });
    while (!hosts.Held()) hosts.Process();
    // As the server asks it: between two requests.
    hosts.Request(b, Us(1), "query", [&](Time) { hosts.Resume(b); });
    const bool answer = hosts.NobodyActs();
    while (!hosts.Held()) hosts.Process();
    return answer;
  };
  for (int i = 0; i < 19; ++i) EXPECT_FALSE(poll(Hosts::Activity::kPolls)) << i;
  EXPECT_TRUE(poll(Hosts::Activity::kPolls));
  hosts.Note(b, Hosts::Activity::kActs);
  EXPECT_FALSE(poll(Hosts::Activity::kPolls));
  for (int i = 0; i < 900; ++i)
    EXPECT_FALSE(poll(Hosts::Activity::kIdles)) << "sleeping is no crime";
}

TEST_F(HostsTest, ReplaceKeepsOneThread) {
  const std::int32_t p = hosts.AddProcess();
  const HostThread a = Start(p), b = Start(p);
  hosts.Process();
  AskAndWait(a, Ns(1));
  hosts.Process();
  hosts.Request(b, Ns(1), "exec", [&](Time) { hosts.Resume(b); });
  hosts.Process();
  hosts.Process();
  hosts.Gone(a);
  hosts.Gone(b);
  hosts.Replace(b);
  EXPECT_EQ(hosts.ThreadCount(p), 1);
  EXPECT_TRUE(hosts.Held());
  EXPECT_TRUE(processes_ended.empty());
  Ask(b, 0);
  hosts.Process();
  EXPECT_EQ(log.size(), 1u);
}

TEST_F(HostsTest, TimeDoesNotOverflow) {
  const HostThread a = Start(hosts.AddProcess());
  hosts.Process();
  for (int i = 0; i < 10; ++i) {
    Ask(a, kTimeNever);
    hosts.Process();
  }
  EXPECT_GT(hosts.now(), 0);
}

}  // namespace
}  // namespace allranks::node
