// How oracles compare: what counts as wrong, what is told of it, and what an oracle may not forget.
#include "allranks/oracle/check.h"

#include <gtest/gtest.h>

#include <limits>

#include "allranks/oracle/freivalds.h"

namespace allranks::oracle {
namespace {

constexpr std::uint32_t kPoison = 0x7ff9ffc5;

// A call of `world` ranks with tensors in memory of its own.
class Bench {
 public:
  explicit Bench(int world) : world_(world) {}

  // The values of all ranks, rank by rank.
  template <class T>
  void Add(const char* name, Dir dir, std::vector<std::vector<T>> ranks) {
    tensors_.push_back({name, ranks[0].size(), TypeOf<T>(), dir});
    std::vector<std::vector<unsigned char>> bytes;
    for (const auto& values : ranks) {
      const auto* from = reinterpret_cast<const unsigned char*>(values.data());
      bytes.emplace_back(from, from + values.size() * sizeof(T));
    }
    bytes_.push_back(std::move(bytes));
  }
  // An output that nobody has written.
  template <class T>
  void AddPoisoned(const char* name, std::size_t count) {
    Add<T>(name, Dir::kOut, std::vector(static_cast<std::size_t>(world_), std::vector<T>(count)));
    for (auto& rank : bytes_.back()) {
      for (std::size_t b = 0; b < rank.size(); ++b) {
        rank[b] = static_cast<unsigned char>(kPoison >> b % 4 * 8);
      }
    }
  }
  template <class T>
  void Set(int rank, std::size_t tensor, std::size_t index, T value) {
    std::memcpy(&bytes_[tensor][static_cast<std::size_t>(rank)][index * sizeof(T)], &value,
                sizeof value);
  }

  template <class F>
  std::uint64_t Run(F f) {
    data_.clear();
    for (int r = 0; r < world_; ++r) {
      for (const auto& tensor : bytes_) data_.push_back(tensor[static_cast<std::size_t>(r)].data());
    }
    poison_.assign(data_.size(), kPoison);
    const RawCall raw{.version = kAbiVersion,
                      .world = world_,
                      .param_count = 0,
                      .tensor_count = static_cast<std::uint32_t>(tensors_.size()),
                      .param_names = nullptr,
                      .params = nullptr,
                      .tensors = tensors_.data(),
                      .data = data_.data(),
                      .poison = poison_.data(),
                      .random = {1, 2, 3, 4}};
    text.clear();
    RawReport report{.context = this, .wrong = &Tell, .limit = 3, .wrong_count = 0, .error = {}};
    const Call call(raw);
    Check check(call, report);
    f(call, check);
    check.RequireAllSeen();
    return report.wrong_count;
  }

  std::string text;

 private:
  static void Tell(void* context, std::int32_t rank, std::uint32_t tensor, std::uint64_t index,
                   const char* expected, const char* got) {
    auto* bench = static_cast<Bench*>(context);
    bench->text += std::to_string(rank) + " " + bench->tensors_[tensor].name + "[" +
                   std::to_string(index) + "] " + expected + " | " + got + "\n";
  }

  int world_;
  std::vector<RawTensor> tensors_;
  std::vector<std::vector<std::vector<unsigned char>>> bytes_;  // by tensor, then by rank
  std::vector<const void*> data_;
  std::vector<std::uint32_t> poison_;
};

const float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Check, ExactIsByValueAndNanNeverMatches) {
  Bench bench(1);
  bench.Add<float>("out", Dir::kOut, {{1.0f, -0.0f, kNan, 4.0f}});
  EXPECT_EQ(bench.Run([&](const Call&, Check& check) {
    check.Near(0, "out", std::vector<double>{1, 0, 2, 4}, std::vector<double>(4, 1e9));
  }),
            1u);
  EXPECT_EQ(bench.text, "0 out[2] 2 +- 1e+09 | nan (0x7fc00000)\n");
  EXPECT_EQ(bench.Run([&](const Call&, Check& check) {
    check.Exact(0, "out", std::vector<float>{1, 0, 3, 5});
  }),
            2u);
  EXPECT_EQ(bench.text, "0 out[2] 3 | nan (0x7fc00000)\n0 out[3] 5 | 4\n");
}

TEST(Check, CountsAllAndTellsTheFirst) {
  Bench bench(1);
  bench.Add<std::int32_t>("out", Dir::kOut, {std::vector<std::int32_t>(5000, 7)});
  std::vector<std::int32_t> expected(5000, 7);
  for (std::size_t i = 1000; i < 1500; ++i) expected[i] = 8;
  EXPECT_EQ(bench.Run([&](const Call&, Check& check) { check.Exact(0, "out", expected); }), 500u);
  EXPECT_EQ(bench.text, "0 out[1000] 8 | 7\n0 out[1001] 8 | 7\n0 out[1002] 8 | 7\n");
}

TEST(Check, WideIntegersAreComparedInAllTheirBits) {
  Bench bench(1);
  constexpr std::int64_t kBig = (std::int64_t{1} << 60) + 1;  // no double is this number
  bench.Add<std::int64_t>("out", Dir::kOut, {{kBig}});
  EXPECT_EQ(bench.Run([&](const Call&, Check& check) {
    check.Exact(0, "out", std::vector<std::int64_t>{kBig});
  }),
            0u);
  EXPECT_EQ(bench.Run([&](const Call&, Check& check) {
    check.Exact(0, "out", std::vector<std::int64_t>{kBig - 1});
  }),
            1u);
  EXPECT_EQ(bench.text, "0 out[0] 1152921504606846976 | 1152921504606846977\n");
}

template <class T>
void PoisonBeyond() {
  for (const std::size_t from : {0, 1, 2, 3, 5, 1021}) {
    Bench bench(2);
    bench.AddPoisoned<T>("out", 2500);
    const auto run = [&](const Call&, Check& check) {
      for (int r = 0; r < 2; ++r) {
        if (from > 0) check.Out<T>(r, "out");
        check.Untouched(r, "out", from);
      }
    };
    EXPECT_EQ(bench.Run(run), 0u) << sizeof(T) << " " << from;
    for (const std::size_t at : {std::size_t{1021}, std::size_t{2499}}) {
      bench.Set<T>(1, 0, at, T{});
      EXPECT_EQ(bench.Run(run), at == 1021 ? 1u : 2u) << sizeof(T) << " " << from;
    }
    EXPECT_EQ(bench.text.substr(0, 33), "1 out[1021] nothing written here ");
  }
}
TEST(Check, PoisonBeyondTheEndMustSurvive) {
  PoisonBeyond<std::uint8_t>();
  PoisonBeyond<BF16>();
  PoisonBeyond<float>();
  PoisonBeyond<double>();
}

TEST(Check, WhatWasNeverWrittenIsSaidSo) {
  Bench bench(1);
  bench.AddPoisoned<BF16>("out", 4);
  EXPECT_EQ(bench.Run([&](const Call&, Check& check) {
    check.Near(0, "out", std::vector<double>(4, 0), std::vector<double>(4, 1));
  }),
            4u);
  EXPECT_EQ(bench.text.substr(0, bench.text.find('\n')), "0 out[0] 0 +- 1 | never written");
}

TEST(Check, SumsOfPieces) {
  // Rank r's output is the r-th half of the sum: a reduce-scatter.
  Bench bench(2);
  bench.Add<float>("in", Dir::kIn, {{1, 2, 3, 4}, {10, 20, 30, 40}});
  bench.Add<float>("out", Dir::kOut, {{11, 22}, {33, 44}});
  const auto run = [&](const Call&, Check& check) {
    for (int r = 0; r < 2; ++r) {
      const auto at = static_cast<std::uint64_t>(2 * r);
      const Piece from[] = {{0, "in", at}, {1, "in", at}}, to[] = {{r, "out", 0}};
      check.Sum(from, to, 2);
    }
  };
  EXPECT_EQ(bench.Run(run), 0u);
  // One addition is rounded to the nearest number: the next one is wrong.
  bench.Set<float>(1, 1, 1, std::nextafter(44.0f, 100.0f));
  EXPECT_EQ(bench.Run(run), 1u);
}

TEST(Check, SumsOfIntegersWrapAndAreExact) {
  Bench bench(2);
  bench.Add<std::int8_t>("in", Dir::kIn, {{100, -3}, {100, -4}});
  bench.Add<std::int8_t>("out", Dir::kOut, {{-56, -7}, {-56, -8}});
  EXPECT_EQ(bench.Run([&](const Call&, Check& check) {
    const Piece from[] = {{0, "in"}, {1, "in"}}, to[] = {{0, "out"}, {1, "out"}};
    check.Sum(from, to, 2);
  }),
            1u);
  EXPECT_EQ(bench.text, "1 out[1] -7 | -8\n");
}

TEST(Check, FaultsOfAnOracleAreErrors) {
  Bench bench(2);
  bench.Add<float>("in", Dir::kIn, {{1, 2}, {3, 4}});
  bench.Add<float>("out", Dir::kOut, {{1, 2}, {3, 4}});
  const auto fails = [&](auto f) { EXPECT_THROW(bench.Run(f), std::runtime_error); };
  fails([](const Call&, Check&) {});  // nothing was compared
  fails([](const Call&, Check& check) { check.ExactAt<float>(0, "out", 0, {}); });
  fails([](const Call&, Check& check) { check.Out<float>(0, "out"); });  // only one rank
  fails([](const Call&, Check& check) { check.Exact(0, "out", std::vector<float>{1, 2, 3}); });
  fails([](const Call&, Check& check) { check.Exact(0, "out", std::vector<double>{1, 2}); });
  fails([](const Call&, Check& check) { check.Exact(0, "in", std::vector<float>{1, 2}); });
  fails([](const Call&, Check& check) { check.Exact(2, "out", std::vector<float>{1, 2}); });
  fails([](const Call& call, Check&) { call.In<float>(0, "nowhere"); });
  fails([](const Call& call, Check&) { call.Param("n"); });
}

class Products : public ::testing::Test {
 protected:
  static constexpr std::size_t kM = 24, kK = 32, kN = 16;
  Products() : bench(1) {
    Random random(5);
    for (float& x : a) x = static_cast<float>(random.Below(9)) - 4;
    for (BF16& x : b) x = FromDouble<BF16>(static_cast<double>(random.Below(9)) - 4);
    for (std::size_t i = 0; i < kM * kN; ++i) {
      for (std::size_t k = 0; k < kK; ++k) {
        c[i] += a[i / kN * kK + k] * static_cast<float>(ToDouble(b[k * kN + i % kN]));
      }
    }
    bench.Add<float>("a", Dir::kIn, {a});
    bench.Add<BF16>("b", Dir::kIn, {b});
    bench.Add<float>("c", Dir::kOut, {c});
  }
  std::uint64_t Wrong() {
    return bench.Run([](const Call& call, Check& check) {
      const std::span<const float> whole = call.In<float>(0, "a");
      const std::span<const float> blocks[] = {whole.first(8 * kK), whole.subspan(8 * kK)};
      Product<float, BF16, float>(call, check, 0, "c", blocks, call.In<BF16>(0, "b"), kK, kN);
    });
  }
  Bench bench;
  std::vector<float> a = std::vector<float>(kM * kK), c = std::vector<float>(kM * kN);
  std::vector<BF16> b = std::vector<BF16>(kK * kN);
};

TEST_F(Products, EveryWrongElementIsFound) {
  EXPECT_EQ(Wrong(), 0u);
  for (const float off : {1.0f, -2.0f, 0.5f, 65536.0f, 1e20f, kNan}) {
    for (const std::size_t at : {std::size_t{0}, kN * 7 + 3, kM * kN - 1}) {
      bench.Set<float>(0, 2, at, c[at] + off);
      EXPECT_EQ(Wrong(), 1u) << off << " " << at;
      bench.Set<float>(0, 2, at, c[at]);
    }
  }
  bench.Set<float>(0, 2, 0, c[1]);
  bench.Set<float>(0, 2, 1, c[0]);
  EXPECT_EQ(Wrong(), c[0] == c[1] ? 0u : 2u);
}

TEST_F(Products, InputsThatAreNotExactAreRefused) {
  bench.Set<float>(0, 0, 3, 0.5f);
  EXPECT_THROW(Wrong(), std::runtime_error);
  bench.Set<float>(0, 0, 3, 16'000'000.0f);
  EXPECT_THROW(Wrong(), std::runtime_error);
}

}  // namespace
}  // namespace allranks::oracle
