// Late writes against a plain list that is searched from its end, on random accesses; and that they
// stay few and quick.
#include "node/state/late_writes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>

namespace allranks::node {
namespace {

struct Plain {
  std::uint64_t offset;
  std::uint32_t size;
  std::byte old[LateWrites::kLineBytes];
  Time visible;
  std::uint64_t writer;
};

TEST(LateWritesTest, AgreesWithAPlainList) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    // Lines are kept by 8: these are of two such pages.
    constexpr std::uint64_t kBytes = 512, kFirst = 64 * LateWrites::kLineBytes - kBytes / 2;
    std::byte memory[kBytes] = {};
    LateWrites late;
    std::vector<Plain> list;
    Time now = 0;
    for (int step = 0; step < 3000; ++step) {
      now += static_cast<Time>(random() % 5);
      const std::uint32_t size = 1u << (random() % 8);
      const std::uint64_t offset = random() % (kBytes / size) * size;
      const std::uint64_t cta = 1 + random() % 3;
      switch (random() % 4) {
        case 0: {  // a store, which becomes visible later
          Plain plain{offset, size, {}, now + static_cast<Time>(random() % 60), cta};
          std::memcpy(plain.old, memory + offset, size);
          late.Add(kFirst + offset, size, plain.old, cta, now);
          late.Close(plain.visible);
          list.push_back(plain);
          for (std::uint32_t i = 0; i < size; ++i) memory[offset + i] = std::byte(random());
          break;
        }
        case 1:  // an atomic has seen the newest
          if (random() % 4 != 0) break;
          late.Reveal(kFirst + offset, size, now);
          for (Plain& plain : list) {
            if (plain.offset < offset + size && offset < plain.offset + plain.size)
              plain.visible = std::min(plain.visible, now);
          }
          break;
        default: {
          const Time sampled = now + static_cast<Time>(random() % 10);
          std::byte expected[LateWrites::kLineBytes], got[LateWrites::kLineBytes];
          std::memcpy(expected, memory + offset, size);
          std::memcpy(got, memory + offset, size);
          late.Hide(kFirst + offset, size, got, sampled, cta);
          Time next = kTimeNever;
          bool missing = false;
          for (std::uint32_t i = 0; i < size; ++i) {
            for (auto plain = list.rbegin(); plain != list.rend(); ++plain) {
              if (offset + i - plain->offset >= plain->size) continue;
              if (plain->visible <= sampled || plain->writer == cta) break;
              missing = true;
              next = std::min(next, plain->visible);
              expected[i] = plain->old[offset + i - plain->offset];
            }
          }
          ASSERT_EQ(std::memcmp(got, expected, size), 0) << seed << " " << step;
          if (missing) {
            EXPECT_TRUE(late.Pending(sampled));
            EXPECT_LE(late.Next(kFirst + offset, size, now), next);
          }
          break;
        }
      }
    }
    EXPECT_LT(late.size(), 600u);
  }
}

// A later write that everybody sees hides an earlier one that is still on its way.
TEST(LateWritesTest, WhatIsPrunedDoesNotComeBack) {
  LateWrites late;
  const std::byte zero[4] = {}, one[4] = {std::byte{1}};
  late.Add(0, 4, zero, 1, 0);
  late.Close(1000);
  late.Add(0, 4, one, 2, 0);
  late.Close(10);
  late.Add(64, 4, zero, 2, 500);  // prunes the line
  late.Close(600);
  std::byte value[4] = {std::byte{2}};
  late.Hide(0, 4, value, 500, 3);
  EXPECT_EQ(value[0], std::byte{2});
}

// However many follow it in its line.
TEST(LateWritesTest, WhatIsOnItsWayStaysHidden) {
  LateWrites late;
  const std::byte old[4] = {};
  late.Add(0, 4, old, 1, 0);
  late.Close(1000);
  for (Time now = 0; now < 500; ++now) {
    late.Add(static_cast<std::uint64_t>(4 + now % 31 * 4), 4, old, 1, now);
    late.Close(now + 900);
  }
  std::byte value[4] = {std::byte{1}};
  late.Hide(0, 4, value, 999, 2);
  EXPECT_EQ(value[0], std::byte{0});
  EXPECT_EQ(late.Latest(0, 4), 1000);
}

// An atomic is made of what others have on their way: its own CTA sees it, but not earlier.
TEST(LateWritesTest, OwnAtomicsSayWhenTheyAreThere) {
  LateWrites late;
  const std::byte zero[4] = {}, one[4] = {std::byte{1}};
  late.Add(0, 4, zero, 1, 0);
  late.Close(1000);
  EXPECT_EQ(late.Latest(0, 4), 1000);
  late.Add(0, 4, one, 2, 0, true);
  late.Add(0, 4, zero, 2, 0, true);  // another lane's, on the same place
  late.Close(1010);
  EXPECT_EQ(late.size(), 2u);
  EXPECT_EQ(late.Latest(0, 4), 1010);
  EXPECT_EQ(late.Latest(4, 4), 0);
  std::byte value[4] = {std::byte{3}};
  EXPECT_EQ(late.Hide(0, 4, value, 500, 2), 1010);
  EXPECT_EQ(value[0], std::byte{3});
  EXPECT_EQ(late.Hide(0, 4, value, 1005, 3), 0);  // another CTA sees the first write
  EXPECT_EQ(value[0], std::byte{1});
}

TEST(LateWritesTest, MegabytesOnTheirWayStayQuick) {
  LateWrites late;
  const std::byte old[16] = {};
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < 400'000; ++i) {
    const Time now = static_cast<Time>(i);
    late.Add(i * 16 % (8u << 20), 16, old, 1, now);
    late.Close(now + 100'000);
    std::byte value[16] = {std::byte{1}};
    late.Hide(i * 16 % (8u << 20), 16, value, now, 2);
    ASSERT_EQ(value[0], std::byte{0});
  }
  // A search through all that are pending would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_LT(late.size(), 450'000u);
  EXPECT_FALSE(late.Pending(1'000'000));
}

}  // namespace
}  // namespace allranks::node
