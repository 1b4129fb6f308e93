// What NVTX ranges come to: by name, over threads, whatever a program leaves open or gets wrong.
#include "server/ranges.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/report.h"

namespace allranks::server {
namespace {

using Kind = wire::RangeEvent::Kind;
using node::Us;

wire::RangeEvent Event(Kind kind, node::Time at, const std::string& text = "", std::uint64_t id = 0,
                       const std::string& domain = "") {
  wire::RangeEvent event;
  event.kind = kind;
  event.at = at;
  event.text = text;
  event.id = id;
  event.domain = domain;
  return event;
}

const RangeTotal* Find(const std::vector<RangeTotal>& totals, const std::string& name,
                       const std::string& domain = "") {
  for (const RangeTotal& total : totals)
    if (total.name == name && total.domain == domain) return &total;
  return nullptr;
}

TEST(Ranges, PushedOnesNestByThreadAndDomain) {
  Ranges ranges(nullptr);
  ranges.Note({0, 1},
              {Event(Kind::kPush, Us(1), "a"), Event(Kind::kPush, Us(2), "b"),
               Event(Kind::kPush, Us(3), "a", 0, "other"), Event(Kind::kPop, Us(4)),
               Event(Kind::kPop, Us(7), "", 0, "other"), Event(Kind::kPop, Us(9))},
              Us(9));
  ranges.Note({0, 2}, {Event(Kind::kPush, Us(1), "a"), Event(Kind::kPop, Us(2))}, Us(9));
  const auto totals = ranges.Totals(Us(9));
  ASSERT_EQ(totals.size(), 3u);
  const RangeTotal* a = Find(totals, "a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a, &totals[0]) << "the most time comes first";
  EXPECT_EQ(a->calls, 2u);
  EXPECT_EQ(a->total, Us(9));
  EXPECT_EQ(a->longest, Us(8));
  EXPECT_EQ(Find(totals, "b")->total, Us(2));
  EXPECT_EQ(Find(totals, "a", "other")->total, Us(4));
}

TEST(Ranges, StartedOnesMayOverlapAndEndInAnotherThread) {
  Ranges ranges(nullptr);
  ranges.Note({0, 1}, {Event(Kind::kStart, Us(1), "a", 1), Event(Kind::kStart, Us(2), "b", 2)},
              Us(2));
  ranges.Note({1, 1}, {Event(Kind::kEnd, Us(3), "", 1)}, Us(3));  // another process's number
  ranges.Note({0, 2}, {Event(Kind::kEnd, Us(5), "", 1), Event(Kind::kEnd, Us(6), "", 2)}, Us(6));
  const auto totals = ranges.Totals(Us(6));
  EXPECT_EQ(Find(totals, "a")->total, Us(4));
  EXPECT_EQ(Find(totals, "b")->total, Us(4));
}

TEST(Ranges, WhatIsOpenEndsWithItsThreadItsProcessOrTheRun) {
  Ranges ranges(nullptr);
  ranges.Note({0, 1}, {Event(Kind::kPush, Us(1), "a"), Event(Kind::kPush, Us(2), "b")}, Us(2));
  ranges.Note({0, 2}, {Event(Kind::kPush, Us(1), "c"), Event(Kind::kStart, Us(1), "d", 7)}, Us(2));
  ranges.ThreadEnded({0, 1}, Us(4));
  EXPECT_EQ(Find(ranges.Totals(Us(8)), "a")->total, Us(3));
  EXPECT_EQ(Find(ranges.Totals(Us(8)), "c")->total, Us(7)) << "still open: until now";
  ranges.ThreadEnded({0, 2}, Us(5));
  ranges.ProcessEnded(0, Us(6));
  EXPECT_EQ(Find(ranges.Totals(Us(8)), "c")->total, Us(4));
  EXPECT_EQ(Find(ranges.Totals(Us(8)), "d")->total, Us(5));
}

TEST(Ranges, NonsenseIsIgnored) {
  Ranges ranges(nullptr);
  ranges.Note({0, 1},
              {Event(Kind::kPop, Us(1)), Event(Kind::kEnd, Us(1), "", 5),
               Event(Kind::kPush, Us(100), "future"), Event(Kind::kPop, Us(-3))},
              Us(2));
  const auto totals = ranges.Totals(Us(2));
  ASSERT_EQ(totals.size(), 1u);
  EXPECT_EQ(totals[0].total, 0) << "times lie between 0 and the thread's clock, and go forward";
  for (std::size_t i = 0; i <= Ranges::kMaxNames; ++i)
    ranges.Note({0, 1}, {Event(Kind::kPush, Us(1), std::to_string(i)), Event(Kind::kPop, Us(2))},
                Us(2));
  EXPECT_LE(ranges.Totals(Us(2)).size(), Ranges::kMaxNames + 1);
  EXPECT_EQ(Find(ranges.Totals(Us(2)), "(further names)")->calls, 2u);
}

}  // namespace
}  // namespace allranks::server
