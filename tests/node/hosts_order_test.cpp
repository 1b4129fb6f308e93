// The conservative rule as a property: scripts of host threads whose requests arrive in any order
// are handled in one.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/hosts.h"

namespace allranks::node {
namespace {

// Everything that was handled, in order.
struct Entry {
  Time at;
  HostThread thread;
  int step;
  auto operator<=>(const Entry&) const = default;
};

struct Step {
  enum Kind { kReply, kSleep, kSpawn, kWakeNext, kKill, kExit } kind = kReply;
  Time cost = 0, sleep = 0;
};
using Script = std::vector<Step>;

// Runs `scripts` (one per process; a spawned thread takes the script after the last) and returns
// what was handled. `choose` decides, whenever several messages could arrive next, which one does.
std::vector<Entry> Play(const std::vector<Script>& scripts, const std::function<int(int)>& choose) {
  std::vector<Entry> log;
  Hosts hosts({}, {[&](HostThread thread, Time at) { log.push_back({at, thread, -1}); }, {}});
  struct Player {
    HostThread thread;
    const Script* script;
    std::size_t next = 0;
    bool started = false;
  };
  std::vector<Player> players;
  std::set<HostThread> running, resumed, dying;
  std::size_t spawned = 0;
  const std::size_t first = (scripts.size() + 1) / 2;
  for (std::size_t i = 0; i < first; ++i) {
    players.push_back({hosts.AddThread(hosts.AddProcess()), &scripts[i]});
    running.insert(players.back().thread);
  }
  auto resume = [&](HostThread thread) {
    hosts.Resume(thread);
    running.insert(thread);
    resumed.insert(thread);
  };
  for (int guard = 0; guard < 100'000; ++guard) {
    // Messages that are on their way; each may be the next to arrive, or the node may go on first.
    std::vector<std::size_t> ready;
    std::erase_if(running, [&](HostThread thread) { return !hosts.Has(thread); });
    const bool closing = !dying.empty();
    for (std::size_t i = 0; i < players.size(); ++i)
      if (running.contains(players[i].thread)) ready.push_back(i);
    const bool can_process = !hosts.Held() && hosts.Due().has_value();
    const int options = static_cast<int>(ready.size()) + (can_process || closing ? 1 : 0);
    if (options == 0) break;
    const int chosen = choose(options);
    if (chosen == static_cast<int>(ready.size()) && closing && (!can_process || choose(2) == 0)) {
      auto next = dying.begin();
      std::advance(next, choose(static_cast<int>(dying.size())));
      const HostThread thread = *next;
      dying.erase(next);
      hosts.Gone(thread);
      continue;
    }
    if (chosen == static_cast<int>(ready.size())) {
      hosts.Process();
      continue;
    }
    const std::size_t index = ready[static_cast<std::size_t>(chosen)];
    const HostThread thread = players[index].thread;
    running.erase(thread);
    if (!players[index].started) {
      players[index].started = true;
      hosts.Request(thread, 0, "hello", [&, thread](Time) { resume(thread); });
      continue;
    }
    const int number = static_cast<int>(players[index].next);
    const bool over = players[index].next == players[index].script->size();
    const Step step =
        over ? Step{Step::kExit, Ns(1), 0} : (*players[index].script)[players[index].next++];
    // Exit while a new thread is on its way to its first instruction is a race of the program's
    // own.
    const bool alone = std::all_of(players.begin(), players.end(), [&](const Player& player) {
      return player.thread.rank != thread.rank || resumed.contains(player.thread);
    });
    if (step.kind == Step::kKill && alone) {
      // exit(): the connections of all threads close, each at its own wall time.
      for (Player& player : players)
        if (player.thread.rank == thread.rank && hosts.Has(player.thread))
          dying.insert(player.thread);
      continue;
    }
    hosts.Request(thread, step.cost, "step", [&, thread, step, number](Time at) {
      log.push_back({at, thread, number});
      switch (step.kind) {
        case Step::kReply:
        case Step::kKill:
          resume(thread);
          break;
        case Step::kSleep:
          hosts.Wait(thread, "sleep", false);
          hosts.WakeAt(thread, at + step.sleep, [&, thread](Time) { resume(thread); });
          break;
        case Step::kSpawn:
          if (first + spawned < scripts.size()) {
            players.push_back({hosts.AddThread(thread.rank), &scripts[first + spawned++]});
            running.insert(players.back().thread);
          }
          resume(thread);
          break;
        case Step::kWakeNext: {
          // The first waiting thread is woken early.
          for (const Hosts::ThreadInfo& other : hosts.Threads()) {
            if (other.state != Hosts::State::kWaiting) continue;
            hosts.WakeAt(other.id, at, [&, id = other.id](Time) { resume(id); });
            break;
          }
          resume(thread);
          break;
        }
        case Step::kExit:
          hosts.End(thread);
          break;
      }
    });
  }
  RC_ASSERT(hosts.Empty());
  return log;
}

TEST(HostsPropertyTest, OrderDoesNotDependOnArrival) {
  const bool passed = rc::check("the same scripts give the same order", [] {
    const auto scripts =
        *rc::gen::container<std::vector<Script>>(rc::gen::container<Script>(rc::gen::apply(
            [](int kind, int cost, int sleep) {
              // Small numbers, so that ties are common.
              return Step{static_cast<Step::Kind>(kind > 4 ? 0 : kind), Ns(cost), Ns(sleep)};
            },
            rc::gen::inRange(0, 10), rc::gen::inRange(1, 4), rc::gen::inRange(0, 6))));
    RC_PRE(!scripts.empty());
    const auto expected = Play(scripts, [](int) { return 0; });
    RC_ASSERT(std::is_sorted(expected.begin(), expected.end(),
                             [](const Entry& a, const Entry& b) { return a.at < b.at; }));
    for (int trial = 0; trial < 5; ++trial) {
      const auto seed = *rc::gen::arbitrary<std::uint32_t>();
      std::uint64_t state = seed * 2 + 1;
      const auto other = Play(scripts, [&](int n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(n));
      });
      RC_ASSERT(other == expected);
    }
  });
  EXPECT_TRUE(passed);
}

}  // namespace
}  // namespace allranks::node
