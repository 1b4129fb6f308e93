// What the judge draws: the streams against values computed elsewhere, the distributions against
// what draw_values.h promises, cases, poison and delays.
#include "judge/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "allranks/oracle/formats.h"
#include "judge/draw_values.h"

namespace allranks::judge {
namespace {

using oracle::BF16;
using oracle::F16;
using oracle::ToDouble;
using problem::Draw;

constexpr char kToml[] = R"(
schema = 1
title = "A problem for tests"
category = "collective"
level = "easy"
library = "cuda"
parallelism = ["tp"]
family = "test"
origin = "none"
split = "public"
[run]
window = "graph"
links = ["nvlink"]
allow = ["kernel"]
[tensors]
in = { dir = "in", type = "f32", shape = ["n"], draw = "uniform" }
mixed = { dir = "in", type = "f32", shape = ["n"], draw = "mixed" }
same = { dir = "in", type = "f32", shape = ["n"], draw = "uniform", same = true }
counts = { dir = "in", type = "i32", shape = ["n", "world"], draw = { kind = "counts", limit = "n" } }
out = { dir = "out", type = "f32", shape = ["n"] }
[cases]
timed = { world = [2], n = [8], m = [256] }
drawn = { world = "2..8", n = "1..300000", m = "256..4096 step 128", count = 4, skew = true }
[floor]
ingress = "n*4"
)";

const problem::Problem& TheProblem() {
  static const problem::Problem problem = [] {
    auto parsed = problem::Parse(kToml, "collective/test");
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed.value_or(problem::Problem{});
  }();
  return problem;
}

// Computed by an implementation of RFC 8439 and SHA-256 that shares nothing with this one.
TEST(Stream, HasTheBytesOfChaCha20) {
  const Key key = KeyOf("seed", "label");
  EXPECT_EQ(Hex(key), "3f3342a3735027b9e97251df097d2812002f4439a4ff703cf5a2f67e30bb5bd2");
  Stream stream(key, "name");
  std::uint32_t words[256];
  stream.Bytes(words, sizeof words);
  EXPECT_EQ(words[0], 0x46a7b9fdu);
  EXPECT_EQ(words[1], 0xb76dd0c8u);
  EXPECT_EQ(words[250], 0xae09ea8eu);
  EXPECT_EQ(words[251], 0x312be48du);
  Stream again(key, "name");
  for (int i = 0; i < 250; ++i) again.Next32();
  EXPECT_EQ(again.Next64(), 0x312be48dae09ea8eu);  // however it is asked for
}

TEST(Stream, BelowHitsEverythingEquallyOften) {
  Stream stream(KeyOf("x", ""), "below");
  std::map<std::uint64_t, int> seen;
  for (int i = 0; i < 6000; ++i) ++seen[stream.Below(6)];
  ASSERT_EQ(seen.size(), 6u);
  for (const auto& [value, count] : seen) EXPECT_NEAR(count, 1000, 150) << value;
  EXPECT_EQ(stream.Below(0), 0u);
  EXPECT_EQ(stream.Between(-3, -3), -3);
}

TEST(Drawer, FillsAsItSays) {
  const problem::Case& one = TheProblem().cases[0];
  ASSERT_EQ(one.name, "timed.w2.n8.m256");
  const Drawer drawer(KeyOf("seed", "label"));
  std::vector<float> a(8), b(8);
  const auto fill = [&](std::vector<float>& to, std::size_t tensor, std::uint32_t call, int rank) {
    EXPECT_TRUE(
        drawer.Fill(TheProblem(), one, tensor, call, rank, std::as_writable_bytes(std::span(to))));
  };
  fill(a, 0, 3, 1);
  fill(b, 0, 3, 1);
  EXPECT_EQ(a, b);
  std::set<float> firsts = {a[0]};
  fill(b, 0, 3, 0);
  firsts.insert(b[0]);
  fill(b, 0, 4, 1);
  firsts.insert(b[0]);
  fill(b, 1, 3, 1);
  firsts.insert(b[0]);
  EXPECT_EQ(firsts.size(), 4u) << "rank, call and tensor must each matter";
}

TEST(Drawer, AnInputMayBeTheSameOnAllRanks) {
  const problem::Case& one = TheProblem().cases[0];
  const Drawer drawer(KeyOf("seed", "label"));
  ASSERT_EQ(TheProblem().tensors[2].name, "same");
  const auto drawn = [&](std::uint32_t call, int rank) {
    std::vector<float> to(8);
    EXPECT_TRUE(
        drawer.Fill(TheProblem(), one, 2, call, rank, std::as_writable_bytes(std::span(to))));
    return to;
  };
  EXPECT_EQ(drawn(3, 0), drawn(3, 1));
  EXPECT_NE(drawn(3, 0), drawn(4, 0));
}

template <class T>
std::vector<double> Values(problem::Type type, std::uint8_t distribution, std::size_t count) {
  std::vector<T> values(count);
  DrawRequest request{.type = type, .kind = Draw::Kind::kMixed};
  request.order = {distribution};
  Stream stream(KeyOf("values", ""), std::to_string(distribution));
  EXPECT_TRUE(FillValues(request, stream, std::as_writable_bytes(std::span(values))));
  std::vector<double> doubles;
  for (const T value : values) doubles.push_back(ToDouble(value));
  return doubles;
}

template <class T>
void CheckDistributions(problem::Type type, double least, double wide, double huge) {
  constexpr std::size_t kCount = 40'000;
  double largest = 0;
  for (std::uint8_t d = 0; d < kMixtures; ++d) {
    const auto values = Values<T>(type, d, kCount);
    double sum = 0, squares = 0, most = 0;
    std::size_t zeros = 0, above = 0, negative = 0;
    for (const double x : values) {
      ASSERT_TRUE(std::isfinite(x));
      ASSERT_TRUE(x == 0 || std::abs(x) >= least) << x;  // no subnormals
      sum += x;
      squares += x * x;
      most = std::max(most, std::abs(x));
      zeros += x == 0 ? 1 : 0;
      above += std::abs(x) > 1 ? 1 : 0;
      negative += x < 0 ? 1 : 0;
    }
    const double n = static_cast<double>(kCount);
    largest = std::max(largest, most);
    switch (d) {
      case 0:
        EXPECT_LE(most, 1);
        EXPECT_NEAR(sum / n, 0, 0.02);
        EXPECT_NEAR(squares / n, 1.0 / 3, 0.02);
        break;
      case 1:
        EXPECT_EQ(zeros, 0u);
        EXPECT_NEAR(static_cast<double>(above) / n, 0.5, 0.05);
        EXPECT_LT(most, wide);
        EXPECT_GT(most, wide * 0.9);
        break;
      case 2:
        for (const double x : values) ASSERT_EQ(x, std::trunc(x));
        EXPECT_EQ(most, 8);
        EXPECT_NEAR(static_cast<double>(zeros) / n, 1.0 / 17, 0.01);
        break;
      case 3:
        EXPECT_NEAR(static_cast<double>(zeros) / n, 15.0 / 16, 0.01);
        EXPECT_GT(most, wide / 4);
        break;
      default:
        EXPECT_NEAR(static_cast<double>(above) / n, 1.0 / 8, 0.01);
        EXPECT_GT(most, huge * 0.9);
        EXPECT_LE(most, huge);
    }
    if (d != 3) {
      EXPECT_NEAR(static_cast<double>(negative) / n, 0.48, 0.03) << int{d};
    }
  }
  EXPECT_LT(16 * largest, type == problem::Type::kF16 ? 65504.0 : 3e38);
}

TEST(DrawValues, DistributionsOfEveryType) {
  CheckDistributions<float>(problem::Type::kF32, 0x1p-126, 0x1p12, 0x1p20);
  CheckDistributions<double>(problem::Type::kF64, 0x1p-126, 0x1p12, 0x1p20);
  CheckDistributions<BF16>(problem::Type::kBf16, 0x1p-126, 0x1p12, 0x1p11);
  CheckDistributions<F16>(problem::Type::kF16, 0x1p-14, 0x1p11, 0x1p11);
}

TEST(DrawValues, FiveCallsHaveFiveDistributions) {
  const problem::Case& one = TheProblem().cases[0];
  problem::Case large = one;
  large.params[0] = 4096;
  const Drawer drawer(KeyOf("five", ""));
  std::set<std::string> kinds;
  for (std::uint32_t call = 0; call < 5; ++call) {
    std::vector<float> values(4096);
    ASSERT_TRUE(
        drawer.Fill(TheProblem(), large, 1, call, 0, std::as_writable_bytes(std::span(values))));
    const float most = std::abs(*std::max_element(
        values.begin(), values.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
    const auto zeros = std::count(values.begin(), values.end(), 0.0f);
    kinds.insert(zeros > 3000     ? "sparse"
                 : zeros > 100    ? "integers"
                 : most <= 1      ? "uniform"
                 : most > 0x1p13f ? "huge"
                                  : "wide");
  }
  EXPECT_EQ(kinds.size(), 5u);
}

std::vector<std::int32_t> Integers(Draw::Kind kind, std::int64_t limit, std::int64_t row,
                                   std::size_t count, const char* name = "i") {
  std::vector<std::int32_t> values(count);
  DrawRequest request{.type = problem::Type::kI32, .kind = kind, .limit = limit, .row = row};
  Stream stream(KeyOf("integers", ""), name);
  EXPECT_TRUE(FillValues(request, stream, std::as_writable_bytes(std::span(values))));
  return values;
}

TEST(DrawValues, Integers) {
  const auto small = Integers(Draw::Kind::kIntegers, 3, 1, 10'000);
  EXPECT_EQ(std::set(small.begin(), small.end()), (std::set{-3, -2, -1, 0, 1, 2, 3}));
  const auto below = Integers(Draw::Kind::kBelow, 5, 1, 10'000);
  EXPECT_EQ(std::set(below.begin(), below.end()), (std::set{0, 1, 2, 3, 4}));
  EXPECT_NEAR(static_cast<double>(std::count(below.begin(), below.end(), 2)), 2000, 250);
}

TEST(DrawValues, CountsFillTheirRowsInManyWays) {
  constexpr int kRow = 8, kLimit = 1000, kRows = 2000;
  const auto counts = Integers(Draw::Kind::kCounts, kLimit, kRow, kRow * kRows);
  int empty = 0, full = 0, half = 0, alone = 0, zeros = 0;
  for (int r = 0; r < kRows; ++r) {
    int sum = 0, used = 0;
    for (int i = 0; i < kRow; ++i) {
      const int count = counts[static_cast<std::size_t>(r * kRow + i)];
      ASSERT_GE(count, 0);
      sum += count;
      used += count > 0 ? 1 : 0;
    }
    ASSERT_LE(sum, kLimit);
    empty += sum == 0 ? 1 : 0;
    full += sum == kLimit ? 1 : 0;
    half += sum >= kLimit / 2 ? 1 : 0;
    alone += used == 1 ? 1 : 0;
    zeros += kRow - used;
  }
  EXPECT_NEAR(empty, kRows / 8, 60);
  EXPECT_GT(full, kRows / 8);
  EXPECT_GT(half, kRows / 2);
  EXPECT_NEAR(alone, kRows / 8, 80);
  EXPECT_GT(zeros, kRows * kRow / 8);
}

TEST(DrawValues, TopKIsDistinctAndSkewed) {
  constexpr int kRow = 4, kExperts = 16, kRows = 4000;
  const auto picks = Integers(Draw::Kind::kTopK, kExperts, kRow, kRow * kRows);
  std::map<int, int> load;
  for (int r = 0; r < kRows; ++r) {
    std::set<int> row;
    for (int i = 0; i < kRow; ++i) row.insert(picks[static_cast<std::size_t>(r * kRow + i)]);
    ASSERT_EQ(row.size(), static_cast<std::size_t>(kRow));
    ASSERT_GE(*row.begin(), 0);
    ASSERT_LT(*row.rbegin(), kExperts);
    for (const int expert : row) ++load[expert];
  }
  int least = kRows, most = 0;
  for (const auto& [expert, count] : load) {
    least = std::min(least, count);
    most = std::max(most, count);
  }
  EXPECT_GT(most, 2 * least);
  // As many as there are: every row is all of them.
  const auto all = Integers(Draw::Kind::kTopK, 4, 4, 40);
  for (std::size_t r = 0; r < 10; ++r) {
    EXPECT_EQ(std::set(all.begin() + static_cast<long>(4 * r),
                       all.begin() + static_cast<long>(4 * r + 4)),
              (std::set{0, 1, 2, 3}));
  }
}

TEST(DrawValues, WhatDoesNotFitIsRefused) {
  std::vector<std::byte> bytes(64);
  const auto fails = [&](problem::Type type, Draw::Kind kind, std::int64_t limit,
                         std::int64_t row) {
    const DrawRequest request{.type = type, .kind = kind, .limit = limit, .row = row};
    Stream stream(KeyOf("f", ""), "");
    return !FillValues(request, stream, bytes);
  };
  EXPECT_TRUE(fails(problem::Type::kBf16, Draw::Kind::kIntegers, 257, 1));
  EXPECT_FALSE(fails(problem::Type::kBf16, Draw::Kind::kIntegers, 256, 1));
  EXPECT_TRUE(fails(problem::Type::kU8, Draw::Kind::kBelow, 257, 1));
  EXPECT_TRUE(fails(problem::Type::kF32, Draw::Kind::kBits, 0, 1));
  EXPECT_TRUE(fails(problem::Type::kI32, Draw::Kind::kTopK, 3, 4));
  EXPECT_TRUE(fails(problem::Type::kI32, Draw::Kind::kCounts, 10, 3));  // 16 elements
}

TEST(Drawer, CasesAreInRangeAndAtTheEdges) {
  int low = 0, high = 0, odd = 0, indivisible = 0, total = 0;
  std::set<int> worlds;
  for (int seed = 0; seed < 200; ++seed) {
    const Drawer drawer(KeyOf(std::to_string(seed), "cases"));
    const auto cases = drawer.DrawCases(TheProblem());
    ASSERT_EQ(cases.size(), 4u);
    std::set<int> mine;
    for (const problem::Case& one : cases) {
      ASSERT_TRUE(one.world >= 2 && one.world <= 8);
      ASSERT_TRUE(one.params[0] >= 1 && one.params[0] <= 300'000);
      ASSERT_TRUE(one.params[1] >= 256 && one.params[1] <= 4096 && one.params[1] % 128 == 0);
      mine.insert(one.world);
      ++total;
      low += one.params[0] == 1 ? 1 : 0;
      high += one.params[0] == 300'000 ? 1 : 0;
      odd += one.params[0] % 2;
      indivisible += one.params[0] % one.world != 0 ? 1 : 0;
    }
    EXPECT_TRUE(mine.contains(8));
    EXPECT_LE(mine.size(), 2u);
    worlds.insert(mine.begin(), mine.end());
    EXPECT_EQ(cases[3].name, "drawn.3");
    EXPECT_TRUE(cases[3].skew);
  }
  EXPECT_EQ(worlds.size(), 7u);
  EXPECT_GT(low, total / 12);
  EXPECT_GT(high, total / 12);
  EXPECT_GT(odd, total / 2);
  EXPECT_GT(indivisible, total / 2);
}

TEST(Drawer, PoisonIsNotANumberInAnyFormat) {
  const Drawer drawer(KeyOf("p", ""));
  std::set<std::uint32_t> words;
  for (std::uint32_t call = 0; call < 64; ++call) {
    const std::uint32_t word = drawer.PoisonWord("timed.w8.n1", call);
    words.insert(word);
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(word)));
    EXPECT_TRUE(std::isnan(std::bit_cast<double>(std::uint64_t{word} << 32 | word)));
    for (const auto half :
         {static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(word >> 16)}) {
      EXPECT_TRUE(std::isnan(ToDouble(F16{half})));
      EXPECT_TRUE(std::isnan(ToDouble(BF16{half})));
    }
  }
  EXPECT_GT(words.size(), 55u) << "calls must be told apart";
}

TEST(Drawer, DelaysAreShortLongOrNone) {
  const Drawer drawer(KeyOf("d", ""));
  int none = 0, above_us = 0;
  for (int rank = 0; rank < 400; ++rank) {
    const std::int64_t delay = drawer.DelayPs("drawn.0", 1, rank);
    ASSERT_TRUE(delay >= 0 && delay <= 20'000'000);
    none += delay == 0 ? 1 : 0;
    above_us += delay > 1'000'000 ? 1 : 0;
  }
  EXPECT_NEAR(none, 200, 50);
  EXPECT_NEAR(above_us, 95, 40);
}

TEST(Drawer, SecretsDifferByLabel) {
  const Drawer drawer(KeyOf("s", ""));
  EXPECT_EQ(drawer.Secret("a").size(), 64u);
  EXPECT_NE(drawer.Secret("a"), drawer.Secret("b"));
  EXPECT_NE(drawer.OracleRandom("x", 0), drawer.OracleRandom("x", 1));
}

}  // namespace
}  // namespace allranks::judge
