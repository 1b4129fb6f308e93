// Which windows a case has: power is spent where a candidate could hide something.
#include "judge/window_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace allranks::judge {
namespace {

using Kind = problem::Case::Kind;
using Mode = WindowSpec::Mode;

constexpr int kBurst = 6;
constexpr std::uint64_t kTinySize = 100'000, kCheapSize = 900'000, kMediumSize = 3'000'000,
                        kLargeSize = 50'000'000;

WindowChoice Of(Kind kind, std::uint64_t size) {
  return WindowChoice({.kind = kind, .size = size, .burst = kBurst, .skew = kind == Kind::kDrawn});
}

std::vector<WindowSpec> All(const WindowChoice& choice) {
  std::vector<WindowSpec> windows = choice.Plain();
  for (const WindowSpec& replay : choice.Replays([](int) { return 0.5; }))
    windows.push_back(replay);
  return windows;
}

std::ptrdiff_t CheckedIn(const WindowChoice& choice) {
  const std::vector<WindowSpec> windows = All(choice);
  return std::count_if(windows.begin(), windows.end(),
                       [&](const WindowSpec& spec) { return choice.IsChecked(spec); });
}

TEST(WindowChoice, ALargeTimedCaseIsCheckedInAllCallsOfABurstAndOfItsReplay) {
  const WindowChoice choice = Of(Kind::kTimed, kLargeSize);
  EXPECT_EQ(choice.Plain().size(), 3u);  // alone and a burst of each seed
  EXPECT_EQ(CheckedIn(choice), 2);
  for (const WindowSpec& spec : All(choice)) {
    EXPECT_EQ(choice.IsChecked(spec),
              spec.mode == Mode::kReplay || (spec.mode == Mode::kBurst && spec.seed == 0));
    EXPECT_EQ(choice.CallsOf(spec), spec.mode == Mode::kAlone ? 1 : kBurst);
  }
}

TEST(WindowChoice, ALargeCaseHasTwoCallsOneByOne) {
  const WindowChoice choice(
      {.kind = Kind::kTimed, .size = kLargeSize, .burst = kBurst, .large = true});
  const std::vector<WindowSpec> windows = All(choice);
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].mode, Mode::kBurst);
  EXPECT_EQ(choice.CallsOf(windows[0]), 2);
  EXPECT_EQ(choice.CallsAtOnce(windows[0]), 1);
  EXPECT_EQ(CheckedIn(choice), 1);
  EXPECT_TRUE(choice.IsSampled(windows[0]));
  EXPECT_EQ(choice.Schedules(true), 0u);
  const WindowChoice usual = Of(Kind::kTimed, kLargeSize);
  EXPECT_EQ(usual.CallsAtOnce({.mode = Mode::kBurst}), kBurst);
  EXPECT_FALSE(usual.IsSampled({.mode = Mode::kBurst}));
}

TEST(WindowChoice, EveryTimedCaseIsReplayedFromADrawnMomentOn) {
  for (const std::uint64_t size : {kTinySize, kCheapSize, kMediumSize, kLargeSize}) {
    const auto replays = Of(Kind::kTimed, size).Replays([](int) { return 0.5; });
    EXPECT_TRUE(std::any_of(replays.begin(), replays.end(), [](const WindowSpec& spec) {
      return spec.moment > 0;
    })) << size;
    for (const WindowSpec& spec : replays) EXPECT_TRUE(spec.disturbed()) << size;
  }
  EXPECT_EQ(Of(Kind::kTimed, kTinySize).Replays([](int) { return 0.5; }).size(), 4u);
  EXPECT_EQ(Of(Kind::kTimed, kMediumSize).Replays([](int) { return 0.5; }).size(), 2u);
  EXPECT_EQ(Of(Kind::kTimed, kLargeSize).Replays([](int) { return 0.5; }).size(), 1u);
}

TEST(WindowChoice, ReplaysOfSmallerTimedCasesAreChecked) {
  EXPECT_EQ(CheckedIn(Of(Kind::kTimed, kTinySize)), 6);    // alone, a burst, four replays
  EXPECT_EQ(CheckedIn(Of(Kind::kTimed, kMediumSize)), 4);  // alone, a burst, two replays
}

TEST(WindowChoice, ADrawnCaseIsCheckedOnceAndWithFewCallsIfItIsLarge) {
  for (const std::uint64_t size : {kTinySize, kMediumSize, kLargeSize}) {
    const WindowChoice choice = Of(Kind::kDrawn, size);
    const std::vector<WindowSpec> windows = All(choice);
    ASSERT_EQ(windows.size(), 1u);
    EXPECT_EQ(windows[0].mode, Mode::kLate);
    EXPECT_TRUE(choice.IsChecked(windows[0]));
    EXPECT_EQ(choice.CallsOf(windows[0]), size == kLargeSize ? 3 : kBurst);
  }
}

TEST(WindowChoice, AVisibleCaseHasAllCalls) {
  const WindowChoice choice = Of(Kind::kVisible, kLargeSize);
  ASSERT_EQ(All(choice).size(), 1u);
  EXPECT_EQ(choice.CallsOf(All(choice)[0]), kBurst);
}

TEST(WindowChoice, WithoutTheCheckerADrawnCaseHasTwoSeedsAndAllCalls) {
  const WindowChoice choice(
      {.kind = Kind::kDrawn, .size = kLargeSize, .burst = kBurst, .skew = true, .checks = false});
  ASSERT_EQ(choice.Plain().size(), 2u);
  EXPECT_EQ(choice.CallsOf(choice.Plain()[0]), kBurst);
  EXPECT_EQ(CheckedIn(choice), 0);
}

TEST(WindowChoice, WhereRanksLiveAllIsCheckedAndNothingIsShorter) {
  for (const Kind kind : {Kind::kTimed, Kind::kDrawn}) {
    const WindowChoice choice({.kind = kind, .size = kLargeSize, .burst = kBurst, .live = true});
    const std::vector<WindowSpec> windows = All(choice);
    EXPECT_EQ(CheckedIn(choice), static_cast<std::ptrdiff_t>(windows.size()));
    for (const WindowSpec& spec : windows)
      EXPECT_EQ(choice.CallsOf(spec), spec.mode == Mode::kAlone ? 1 : kBurst);
  }
}

TEST(WindowChoice, OnlyCheapCasesAreRunUnderOtherSchedules) {
  EXPECT_GT(Of(Kind::kVisible, kTinySize).Schedules(false),
            Of(Kind::kVisible, kCheapSize).Schedules(false));
  EXPECT_GT(Of(Kind::kVisible, kCheapSize).Schedules(false), 0u);
  EXPECT_EQ(Of(Kind::kVisible, kMediumSize).Schedules(false), 0u);
  EXPECT_GT(Of(Kind::kVisible, kLargeSize).Schedules(true), 0u);
  EXPECT_EQ(WindowChoice({.size = std::nullopt}).Schedules(false), 0u);
}

TEST(WindowChoice, ForTimesAloneThereIsOneBurst) {
  const WindowChoice choice({.size = kLargeSize, .burst = kBurst, .times_only = true});
  ASSERT_EQ(All(choice).size(), 1u);
  EXPECT_EQ(All(choice)[0].mode, Mode::kBurst);
}

}  // namespace
}  // namespace allranks::judge
