// Clocks, shadow and history of the checker by themselves; what they say of programs is tested by
// tests/litmus.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <tuple>

#include "node/check/clock.h"
#include "node/check/history.h"
#include "node/check/shadow.h"
#include "node/findings.h"

namespace allranks::node::check {
namespace {

constexpr std::uint32_t kAll = 0xffffffff;

TEST(KnownTest, LanesBeyondTheBase) {
  KnownRef known = WithBase(nullptr, 5);
  known = With(known, 0, 0b0011, 7);
  known = With(known, 0, 0b0100, 9);
  EXPECT_EQ(known->Lanes(0, kAll, 5), kAll);
  EXPECT_EQ(known->Lanes(0, kAll, 6), 0b0111u);
  EXPECT_EQ(known->Lanes(0, kAll, 8), 0b0100u);
  EXPECT_EQ(known->Lanes(1, kAll, 6), 0u);
  EXPECT_EQ(With(known, 0, 0b0001, 6), known);
  EXPECT_TRUE(WithBase(known, 9)->beyond.empty());
}

TEST(KnownTest, ABarrierSaysNothingOfCopies) {
  const KnownRef known = WithBase(With(nullptr, kFirstCopyWarp, 1, 4), 9);
  EXPECT_EQ(known->Lanes(kFirstCopyWarp, 1, 4), 1u);
  EXPECT_EQ(known->Lanes(kFirstCopyWarp, 1, 5), 0u);
}

// Against sets of (warp, lane, tick): what is added is known, up to its tick, and nothing else.
TEST(KnownTest, AgreesWithAMap) {
  const bool holds =
      rc::check([](std::vector<std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>> adds) {
        KnownRef known, others[2];
        std::map<std::pair<int, int>, Tick> model;
        for (const auto& [warp, lanes, tick] : adds) {
          known = With(known, warp % 3, lanes, tick);
          KnownRef& half = others[tick % 2];
          half = With(half, warp % 3, lanes, tick);
          for (int l = 0; l < 8; ++l) {
            if ((lanes >> l & 1) == 0) continue;
            Tick& at = model[{warp % 3, l}];
            at = std::max<Tick>(at, tick);
          }
        }
        const KnownRef joined = Merged(others[0], others[1]), nobody;
        const KnownRef all = MergedAll({&others[0], &nobody, &others[1], &others[0]});
        RC_ASSERT(joined == all);
        for (std::uint16_t warp = 0; warp < 3; ++warp) {
          for (int l = 0; l < 8; ++l) {
            const Tick most = model[{warp, l}];
            for (Tick tick = 1; tick < 256; tick += 5) {
              RC_ASSERT((LanesOf(known, warp, 1u << l, tick) != 0) == (tick <= most));
              RC_ASSERT((LanesOf(joined, warp, 1u << l, tick) != 0) == (tick <= most));
            }
          }
        }
      });
  EXPECT_TRUE(holds);
}

// Against a map: two versions that began as one, joined, and what is dropped from that.
TEST(TrieTest, AgreesWithAMap) {
  using Numbers = Trie<std::uint32_t>;
  using Sets = std::vector<std::pair<std::uint16_t, std::uint8_t>>;
  const bool holds = rc::check([](const Sets& common, const Sets& more, const Sets& others) {
    const auto set = [](Numbers numbers, std::map<std::uint32_t, std::uint32_t>& model,
                        const Sets& sets) {
      for (const auto& [key, value] : sets) {
        const std::uint32_t at = key >> key % 13;  // of all magnitudes
        numbers = numbers.With(at, value + 1u);
        model[at] = value + 1u;
      }
      return numbers;
    };
    std::map<std::uint32_t, std::uint32_t> in_start;
    const Numbers start = set({}, in_start, common);
    auto in_a = in_start, in_b = in_start;
    const Numbers a = set(start, in_a, more), b = set(start, in_b, others);
    const Numbers joined = Numbers::Joined(a, b);
    const Numbers even =
        joined.Filtered([](std::uint32_t key, std::uint32_t) { return key % 2 == 0; });
    for (const auto& model : {in_a, in_b}) {
      for (const auto& [key, unused] : model) {
        const std::uint32_t most = std::max(in_a[key], in_b[key]);
        RC_ASSERT(a.Get(key) == in_a[key]);
        RC_ASSERT(joined.Get(key) == most);
        RC_ASSERT(even.Get(key) == (key % 2 == 0 ? most : 0u));
      }
    }
    const Numbers nothing;
    const auto all = [](std::uint32_t) { return true; };
    RC_ASSERT(Numbers::Joined({&a, &nothing, &b, &a}, all) == joined);
    RC_ASSERT(Numbers::Joined({&a, &joined, &b}, all) == joined);
    RC_ASSERT(Numbers::Joined(joined, a) == joined);
    RC_ASSERT(Numbers::Joined(a, joined) == joined);
    RC_ASSERT(Numbers::Joined(start, start) == start);
  });
  EXPECT_TRUE(holds);
}

Places SomePlaces() {
  Places places;
  places.of = {{0, 0}, {1, 1}, {1, 2}, {2, 1}, {3, 1}};
  places.ends.resize(4);
  return places;
}

ClockRef Of(Agent cta, Tick base) { return With(nullptr, cta, WithBase(nullptr, base)); }

TEST(ClockTest, JoiningIsKnowingEither) {
  const Places places = SomePlaces();
  const Joins join(places);
  const ClockRef joined = join(Of(2, 4), With(Of(3, 7), ChainPlace{1, 1}));
  EXPECT_EQ(joined->Of(2)->base, 4u);
  EXPECT_EQ(joined->Of(3)->base, 7u);
  EXPECT_TRUE(joined->Over(1, places));
  EXPECT_FALSE(joined->Over(2, places));
}

TEST(ClockTest, NothingNewIsTheSameClock) {
  Places places = SomePlaces();
  places.of.resize(301, {2, 2});
  const Joins join(places);
  const ClockRef more = join(Of(2, 4), Of(300, 7));
  EXPECT_EQ(join(more, Of(2, 3)), more);
  EXPECT_EQ(join(Of(2, 3), more), more);
  EXPECT_EQ(join(more, nullptr), more);
}

// Who learns that a kernel is over forgets its blocks, whichever side knew them.
TEST(ClockTest, WhatIsOverIsNotJoined) {
  const Places places = SomePlaces();
  const Joins join(places);
  const ClockRef over = With(Of(3, 7), ChainPlace{1, 2});
  const ClockRef pair = join(Of(2, 4), over);
  EXPECT_EQ(pair, over);
  EXPECT_EQ(join({Of(2, 4), Of(2, 5), over}), over);
  EXPECT_TRUE(pair->Over(2, places));
  // Nor is what one side had forgotten already news to it.
  EXPECT_EQ(join(over, Of(1, 1)), over);
  // What nobody says to be over stays.
  const ClockRef both = join({Of(2, 4), Of(3, 5), Of(4, 1)});
  EXPECT_EQ(both->Of(2)->base, 4u);
  EXPECT_EQ(both->Of(3)->base, 5u);
  EXPECT_EQ(both->Of(4)->base, 1u);
}

// One after the other and all at once, in any order.
TEST(ClockTest, JoinsAreTheSameInAnyOrder) {
  EXPECT_TRUE(rc::check([](const std::vector<std::tuple<std::uint8_t, std::uint8_t, bool>>& facts) {
    Places places;
    places.of.emplace_back();
    for (std::uint32_t agent = 1; agent < 256; ++agent)
      places.of.push_back({1 + agent / 64, 1 + agent / 8 % 8});
    places.ends.resize(8);
    const Joins join(places);
    std::vector<ClockRef> clocks;
    for (const auto& [agent, tick, over] : facts) {
      const Agent of = std::max<Agent>(agent, 1);
      clocks.push_back(over ? With(nullptr, places.of[of]) : Of(of, 1u + tick));
    }
    ClockRef one_by_one, backwards;
    for (const ClockRef& clock : clocks) one_by_one = join(one_by_one, clock);
    for (std::size_t i = clocks.size(); i-- > 0;) backwards = join(backwards, clocks[i]);
    const ClockRef at_once = join(clocks);
    for (Agent agent = 1; agent < 256; ++agent) {
      const auto knows = [&](const ClockRef& clock) {
        if (clock == nullptr) return Tick{0};
        return clock->Over(agent, places) ? kOver : BaseOf(clock->Of(agent));
      };
      RC_ASSERT(knows(one_by_one) == knows(at_once));
      RC_ASSERT(knows(backwards) == knows(at_once));
    }
  }));
}

TEST(ClockTest, BlocksOfAKernelThatIsOverAreDropped) {
  const Places places = SomePlaces();
  const ClockRef over = Compacted(With(Of(2, 4), ChainPlace{1, 2}), places);
  EXPECT_EQ(over->Of(2), nullptr);
  EXPECT_TRUE(over->Over(2, places));
}

TEST(ClockTest, AChainThatHasEndedIsKnownByWhereItEnded) {
  Places places = SomePlaces();
  places.ends[3] = {1, 2};
  const ClockRef node = With(nullptr, ChainPlace{3, 1});
  const ClockRef graph = Compacted(With(node, ChainPlace{1, 2}), places);
  EXPECT_EQ(graph->On(3), 0u);
  EXPECT_TRUE(graph->Over(4, places));
  EXPECT_FALSE(With(nullptr, ChainPlace{1, 1})->Over(4, places));
}

Entry Some(std::uint8_t first, std::uint8_t width, std::uint8_t stride, std::uint8_t lane,
           std::uint8_t count) {
  Entry entry;
  entry.agent = 1;
  entry.first = first;
  entry.width = width;
  entry.stride = stride;
  entry.lane = lane;
  entry.count = count;
  return entry;
}

// Which lanes share bytes, against a byte-wise count.
TEST(EntryTest, CommonLanesAgreeWithBytes) {
  const bool holds = rc::check([]() {
    const auto draw = [] {
      const auto width = static_cast<std::uint8_t>(1 << *rc::gen::inRange(0, 5));
      const auto count = static_cast<std::uint8_t>(*rc::gen::inRange(1, 5));
      const auto stride = static_cast<std::uint8_t>(width * *rc::gen::inRange(0, 3));
      const auto first = static_cast<std::uint8_t>(*rc::gen::inRange(0, 32));
      return Some(first, width, stride, static_cast<std::uint8_t>(*rc::gen::inRange(0, 8)), count);
    };
    const Entry a = draw(), b = draw();
    const auto bytes = [](const Entry& e) {
      std::map<int, std::set<int>> lanes;
      for (int i = 0; i < e.count; ++i)
        for (int k = 0; k < e.width; ++k) lanes[e.first + i * e.stride + k].insert(e.lane + i);
      return lanes;
    };
    std::uint32_t mine = 0, theirs = 0;
    bool crossed = false;
    const auto in_a = bytes(a);
    const auto in_b = bytes(b);
    for (const auto& [at, lanes] : in_a) {
      const auto other = in_b.find(at);
      if (other == in_b.end()) continue;
      for (const int l : lanes) {
        mine |= 1u << l;
        for (const int k : other->second) {
          theirs |= 1u << k;
          crossed |= k != l;
        }
      }
    }
    std::uint32_t others = 0;
    bool found = false;
    RC_ASSERT(a.Common(b, &others, &found) == mine);
    RC_ASSERT(others == theirs);
    RC_ASSERT(found == crossed);
    RC_ASSERT(a.Overlaps(b) == (mine != 0));
  });
  EXPECT_TRUE(holds);
}

TEST(HistoryTest, KeepsWhatIsOnItsWayAndAFewOfTheRest) {
  const Places places;
  const Joins join(places);
  History history;
  for (int i = 0; i < 10; ++i) {
    StrongWrite& write = history.Add(join, 2, 100);
    write.number = static_cast<std::uint64_t>(i);
    write.first = 8;
    write.size = 4;
    write.visible = i < 6 ? 50 : 200;
  }
  history.Add(join, 2, 100).first = 64;
  std::vector<std::uint64_t> kept;
  for (const StrongWrite& write : history.writes())
    if (write.first == 8) kept.push_back(write.number);
  EXPECT_EQ(kept, (std::vector<std::uint64_t>{4, 5, 6, 7, 8, 9}));
}

TEST(HistoryTest, AWarpGetsOldValuesOnlySoManyTimes) {
  History history;
  int times = 0;
  while (history.Stubborn(1, 0, 0)) ++times;
  EXPECT_EQ(times, History::kMostStale);
  EXPECT_TRUE(history.Stubborn(1, 1, 0));
  history.Yielded(1, 0, 0);
  EXPECT_TRUE(history.Stubborn(1, 0, 0));
}

// What does not count against a program cannot crowd out what does.
TEST(FoldTest, RacesFindRoomBehindPortability) {
  std::vector<Finding> all, more;
  for (int i = 0; i < 400; ++i) {
    Finding& finding = more.emplace_back();
    finding.kind = Finding::Kind::kPortability;
    finding.accesses.emplace_back().line = i;
  }
  more.emplace_back().accesses.emplace_back();
  Fold(std::move(more), &all);
  EXPECT_LT(all.size(), 400u);  // not all of them
  EXPECT_EQ(CountedOf(all), 1u);
}

}  // namespace
}  // namespace allranks::node::check
