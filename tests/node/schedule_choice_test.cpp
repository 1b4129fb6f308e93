// Which schedules are chosen.
#include "node/schedule_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace allranks::node {
namespace {

std::vector<std::uint64_t> Of(const std::vector<std::uint64_t>& all, std::uint64_t level) {
  std::vector<std::uint64_t> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some),
               [&](std::uint64_t number) { return number / kDirected == level; });
  return some;
}

TEST(Schedules, TakeTurnsOfDirectedAndDrawnOnes) {
  const auto chosen = ChooseSchedules({40, 40, 80, 300, 90}, 9);
  ASSERT_EQ(chosen.size(), 9u);
  EXPECT_EQ(Of(chosen, 0), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(Of(chosen, 1).size(), 3u);
  EXPECT_EQ(Of(chosen, 2).size(), 3u);
}

TEST(Schedules, TheFirstOnesDoNotDependOnHowManyThereAre) {
  const PlaceCounts places{17, 23, 46, 200, 60};
  const auto few = ChooseSchedules(places, 10), many = ChooseSchedules(places, 100);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

TEST(Schedules, EveryPlaceComesOnce) {
  const auto chosen = ChooseSchedules({5, 7, 11, 13, 17}, 200);
  const std::set<std::uint64_t> different(chosen.begin(), chosen.end());
  EXPECT_EQ(different.size(), chosen.size());
  EXPECT_EQ(Of(chosen, 1).size(), 5u);
  EXPECT_EQ(Of(chosen, 2).size(), 7u);
  EXPECT_EQ(Of(chosen, 3).size(), 11u);
  EXPECT_EQ(Of(chosen, 5).size(), 17u);
}

TEST(Schedules, ADrawTurnsThemAround) {
  const PlaceCounts places{50, 70, 0, 0, 0};
  EXPECT_NE(ChooseSchedules(places, 12, 0), ChooseSchedules(places, 12, 5));
  const auto chosen = ChooseSchedules(places, 500, 12345);
  EXPECT_EQ(Of(chosen, 1).size(), 50u);
  EXPECT_EQ(std::set(chosen.begin(), chosen.end()).size(), chosen.size());
}

TEST(Schedules, AProgramWithoutPlacesHasDrawnOnes) {
  EXPECT_EQ(ChooseSchedules({}, 3), (std::vector<std::uint64_t>{1, 2, 3}));
}

}  // namespace
}  // namespace allranks::node
