// The axioms say of well-known shapes what everybody says of them.
#include "axioms.h"

#include <gtest/gtest.h>

#include <vector>

namespace allranks::litmus {
namespace {

enum Order { kWeak, kRelaxed, kOrdered };

Event Load(int thread, int location, Order order = kRelaxed, Reach reach = Reach::kSystem) {
  return {Event::Kind::kLoad, thread, location, order != kWeak,
          order == kOrdered,  false,  false,    reach};
}
Event Store(int thread, int location, Order order = kRelaxed, Reach reach = Reach::kSystem) {
  return {Event::Kind::kStore, thread, location, order != kWeak, false,
          order == kOrdered,   false,  reach};
}
Event Atomic(int thread, int location, Reach reach = Reach::kSystem) {
  return {Event::Kind::kAtomic, thread, location, true, false, false, false, reach};
}
Event Fence(int thread, bool sc, Reach reach = Reach::kSystem) {
  return {Event::Kind::kFence, thread, -1, true, true, true, sc, reach};
}

// Each thread on a device of its own.
SmallProgram Program(int threads, std::vector<Event> events) {
  SmallProgram program;
  for (int t = 0; t < threads; ++t) program.threads.push_back({t, 0});
  program.events = std::move(events);
  program.locations = 2;
  return program;
}

constexpr int kNo = Seen::kFirst;

TEST(LitmusAxiomsTest, MessagePassing) {
  const auto program = [](Order flag, Order data, Reach reach = Reach::kSystem) {
    return Program(
        2, {Store(0, 0, data), Store(0, 1, flag, reach), Load(1, 1, flag), Load(1, 0, data)});
  };
  const Seen stale{{kNo, kNo, 1, kNo}, {0, 1}}, newest{{kNo, kNo, 1, 0}, {0, 1}},
      early{{kNo, kNo, kNo, kNo}, {0, 1}};
  EXPECT_FALSE(Permitted(program(kOrdered, kRelaxed), stale));
  EXPECT_TRUE(Permitted(program(kOrdered, kRelaxed), newest));
  EXPECT_TRUE(Permitted(program(kOrdered, kRelaxed), early));
  EXPECT_TRUE(Permitted(program(kRelaxed, kRelaxed), stale));
  EXPECT_TRUE(Permitted(program(kOrdered, kRelaxed, Reach::kDevice), stale));
  EXPECT_TRUE(Races(program(kOrdered, kWeak), newest).empty());
  EXPECT_EQ(Races(program(kOrdered, kWeak), early).size(), 1u);
  EXPECT_EQ(Races(program(kRelaxed, kWeak), newest).size(), 1u);
  EXPECT_EQ(Races(program(kOrdered, kWeak, Reach::kDevice), newest).size(), 2u);
}

TEST(LitmusAxiomsTest, StoreBuffering) {
  const auto program = [](bool sc, Reach reach) {
    return Program(2, {Store(0, 0), Fence(0, sc, reach), Load(0, 1), Store(1, 1),
                       Fence(1, sc, reach), Load(1, 0)});
  };
  const Seen both{{kNo, kNo, kNo, kNo, kNo, kNo}, {0, 3}};
  EXPECT_FALSE(Permitted(program(true, Reach::kSystem), both));
  EXPECT_TRUE(Permitted(program(false, Reach::kSystem), both));
  EXPECT_TRUE(Permitted(program(true, Reach::kDevice), both));
}

TEST(LitmusAxiomsTest, IndependentReaders) {
  const auto program = [](bool sc) {
    return Program(4, {Store(0, 0), Store(1, 1), Load(2, 0), Fence(2, sc), Load(2, 1), Load(3, 1),
                       Fence(3, sc), Load(3, 0)});
  };
  const Seen disagree{{kNo, kNo, 0, kNo, kNo, 1, kNo, kNo}, {0, 1}};
  EXPECT_FALSE(Permitted(program(true), disagree));
  EXPECT_TRUE(Permitted(program(false), disagree));
}

TEST(LitmusAxiomsTest, Coherence) {
  const SmallProgram reads = Program(2, {Store(0, 0), Load(1, 0), Load(1, 0)});
  EXPECT_FALSE(Permitted(reads, {{kNo, 0, kNo}, {0, kNo}}));
  EXPECT_TRUE(Permitted(reads, {{kNo, kNo, 0}, {0, kNo}}));
  const SmallProgram writes = Program(2, {Store(0, 0), Store(0, 0), Load(1, 0)});
  EXPECT_FALSE(Permitted(writes, {{kNo, kNo, 0}, {0, kNo}}));
  const SmallProgram own = Program(2, {Store(0, 0), Load(0, 0), Store(1, 0)});
  EXPECT_FALSE(Permitted(own, {{kNo, kNo, kNo}, {0, kNo}}));
  EXPECT_FALSE(Permitted(own, {{kNo, 2, kNo}, {0, kNo}}));
}

TEST(LitmusAxiomsTest, Atomicity) {
  const SmallProgram two = Program(2, {Atomic(0, 0), Atomic(1, 0)});
  EXPECT_TRUE(Permitted(two, {{kNo, 0}, {1, kNo}}));
  EXPECT_FALSE(Permitted(two, {{kNo, kNo}, {1, kNo}}));
  const SmallProgram narrow =
      Program(2, {Atomic(0, 0, Reach::kDevice), Atomic(1, 0, Reach::kDevice)});
  EXPECT_TRUE(Permitted(narrow, {{kNo, kNo}, {1, kNo}}));
  EXPECT_EQ(Races(narrow, {{kNo, kNo}, {1, kNo}}).size(), 1u);
}

TEST(LitmusAxiomsTest, AtomicsCarryARelease) {
  const auto program = [](Event link) {
    return Program(3, {Store(0, 0, kWeak), Store(0, 1, kOrdered), link, Load(2, 1, kOrdered),
                       Load(2, 0, kWeak)});
  };
  EXPECT_TRUE(Races(program(Atomic(1, 1)), {{kNo, kNo, 1, 2, 0}, {0, 2}}).empty());
  EXPECT_EQ(Races(program(Store(1, 1)), {{kNo, kNo, kNo, 2, 0}, {0, 2}}).size(), 1u);
}

TEST(LitmusAxiomsTest, OrderOfFencesIsNoOrderForRaces) {
  const SmallProgram program =
      Program(2, {Store(0, 0, kWeak), Fence(0, true), Fence(1, true), Load(1, 0, kWeak)});
  EXPECT_EQ(Races(program, {{kNo, kNo, kNo, 0}, {0, kNo}}).size(), 1u);
}

}  // namespace
}  // namespace allranks::litmus
