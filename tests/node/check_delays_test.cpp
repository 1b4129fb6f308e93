// Which places of a directed schedule are late, and for how long.
#include "node/state/delays.h"

#include <gtest/gtest.h>

#include <vector>

#include "ptx_machine.h"

namespace allranks::node::check {
namespace {

using Kind = Delays::Kind;

Delays::Place At(Kind kind, std::uint32_t pc, int device) { return {kind, nullptr, pc, device}; }

TEST(Delays, AStoreOnItsWayIsLateOnOneDeviceAtLevelThree) {
  Delays all, one;
  all.Set(1, 1);
  one.Set(3, 1);
  for (Delays* delays : {&all, &one}) {
    EXPECT_GT(delays->At(At(Kind::kFlight, 7, 0), Us(1), 0), 0);
    EXPECT_GT(delays->At(At(Kind::kFlight, 7, 0), Us(2), 0), 0);
    EXPECT_EQ(delays->At(At(Kind::kFlight, 8, 0), Us(3), 0), 0);
  }
  EXPECT_GT(all.At(At(Kind::kFlight, 7, 1), Us(4), 0), 0);
  EXPECT_EQ(one.At(At(Kind::kFlight, 7, 1), Us(4), 0), 0);
}

TEST(Delays, ShorterStopsFollowTheFirst) {
  std::vector<Time> lengths[2];
  for (auto& length : lengths) {
    Delays delays;
    delays.Set(2, 1);
    const Time first = delays.At(At(Kind::kStore, 7, 0), Us(1), 0);
    EXPECT_GE(first, Ms(2));
    // Until it is over nobody else stops.
    for (std::uint32_t pc = 0; pc < 100; ++pc)
      EXPECT_EQ(delays.At(At(Kind::kStore, pc, 1), Us(2), 0), 0);
    Time now = Us(1) + first;
    for (std::uint32_t i = 0; i < 1000; ++i) {
      const Time late = delays.At(At(Kind::kStore, i % 10, 1), now, 0);
      if (late != 0) length.push_back(late);
      now += late + Us(1);
    }
  }
  EXPECT_EQ(lengths[0], lengths[1]);
  ASSERT_EQ(lengths[0].size(), 16u);
  for (const Time late : lengths[0]) EXPECT_LE(late, Ms(2));
}

TEST(Delays, LevelOneStopsNobody) {
  Delays delays;
  delays.Set(1, 1);
  EXPECT_GT(delays.At(At(Kind::kStale, 7, 0), 0, 0), 0);
  for (std::uint32_t i = 0; i < 1000; ++i)
    EXPECT_EQ(delays.At(At(Kind::kStore, i % 10, 1), Us(i + 1), 0), 0);
}

class Counting : public PtxMachineTest {
 protected:
  void SetUp() override {}
  // When the kernel has ended.
  Time End(const Schedule& schedule) {
    MachineOptions options;
    options.check = true;
    Start(options);
    Checking& checking = *machine_->checking();
    checking.SetChecking(true);
    checking.SetSchedule(schedule);
    Options one;
    one.block = {1, 1, 1};
    Run<std::uint32_t>(
        "st.relaxed.sys.global.u32 [%out], %t;\nfence.sc.sys;\n"
        "ld.relaxed.sys.global.u32 %r1, [%in];\nfence.sc.gpu;\n"
        "st.relaxed.sys.global.u32 [%out+4], %r1;",
        256, std::vector<std::uint32_t>(256, 7), one);
    places_ = checking.Places();
    return machine_->now();
  }
  PlaceCounts places_{};
};

TEST_F(Counting, TakesNoTime) {
  const Time plain = End({});
  EXPECT_EQ(places_[1], 0u);
  EXPECT_EQ(End({.places = true}), plain);
  const std::uint64_t stops = places_[1];
  EXPECT_GE(stops, 6u) << "two stores, two fences, a load, the block";
  int late = 0;
  for (std::uint64_t place = 1; place <= stops; ++place)
    late += End({.level = 2, .place = place}) > plain;
  EXPECT_GE(late, 5);
}

}  // namespace
}  // namespace allranks::node::check
