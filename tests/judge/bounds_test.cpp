// Error budgets against sums as candidates make them, on the inputs that the judge draws: no order
// of accumulation in the stated type fails, and accumulating in a smaller one does.
#include "allranks/oracle/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "judge/draw_values.h"

namespace allranks::oracle {
namespace {

constexpr int kRanks = 8;
constexpr std::size_t kCount = 2048;

// The five distributions of `mixed`, by number.
template <class T>
std::vector<std::vector<T>> Drawn(problem::Type type, std::uint8_t distribution, int seed) {
  std::vector<std::vector<T>> ranks;
  for (int r = 0; r < kRanks; ++r) {
    judge::DrawRequest request{.type = type, .kind = problem::Draw::Kind::kMixed};
    request.order = {distribution};
    judge::Stream stream(judge::KeyOf(std::to_string(seed), "bounds"),
                         std::to_string(distribution) + "/" + std::to_string(r));
    std::vector<T> values(kCount);
    EXPECT_TRUE(judge::FillValues(request, stream, std::as_writable_bytes(std::span(values))));
    ranks.push_back(std::move(values));
  }
  return ranks;
}

template <class T>
T Round(double x) {
  return FromDouble<T>(x);
}

// A sum of one element over all ranks by a random tree: two partial sums at a time are added and
// rounded to Accumulated.
template <class Accumulated>
double TreeSum(std::vector<double> terms, std::mt19937& random) {
  for (double& term : terms) term = ToDouble(Round<Accumulated>(term));
  while (terms.size() > 1) {
    std::swap(terms[random() % terms.size()], terms.back());
    const double last = terms.back();
    terms.pop_back();
    double& other = terms[random() % terms.size()];
    // f64 has twice the bits of f32 and two more: rounding to it first changes nothing (Figueroa).
    other = ToDouble(Round<Accumulated>(other + last));
  }
  return terms[0];
}

struct Outcome {
  int wrong = 0;
  double worst = 0;  // largest error, as a part of the bound
};

// Sums by elements: In -> Used (accumulation) -> Out, judged with a budget for `stated`.
template <class In, class Used, class Out>
Outcome Judge(const std::vector<std::vector<In>>& ranks, Type stated, int seed) {
  const Budget budget = SumBudget(TypeOf<In>(), stated, TypeOf<Out>(), kRanks);
  std::mt19937 random(static_cast<unsigned>(seed));
  Outcome outcome;
  for (std::size_t i = 0; i < kCount; ++i) {
    std::vector<double> terms;
    double sum = 0, magnitude = 0;
    for (const auto& rank : ranks) {
      terms.push_back(ToDouble(rank[i]));
      sum += terms.back();
      magnitude += std::abs(terms.back());
    }
    const double got = ToDouble(Round<Out>(TreeSum<Used>(terms, random)));
    const double bound = budget.Of(magnitude, sum), error = std::abs(got - sum);
    if (!(error <= bound)) ++outcome.wrong;
    if (bound > 0) outcome.worst = std::max(outcome.worst, error / bound);
  }
  return outcome;
}

constexpr std::uint8_t kUniform = 0, kWide = 1, kHuge = 4;

TEST(Bounds, AnyOrderInF32Passes) {
  for (std::uint8_t d = 0; d < judge::kMixtures; ++d) {
    for (int seed = 0; seed < 10; ++seed) {
      const auto f32 = Drawn<float>(problem::Type::kF32, d, seed);
      EXPECT_EQ((Judge<float, float, float>(f32, Type::kF32, seed).wrong), 0) << int{d};
      const auto bf16 = Drawn<BF16>(problem::Type::kBf16, d, seed);
      EXPECT_EQ((Judge<BF16, float, BF16>(bf16, Type::kF32, seed).wrong), 0) << int{d};
      EXPECT_EQ((Judge<BF16, float, float>(bf16, Type::kF32, seed).wrong), 0) << int{d};
      const auto f16 = Drawn<F16>(problem::Type::kF16, d, seed);
      EXPECT_EQ((Judge<F16, float, F16>(f16, Type::kF32, seed).wrong), 0) << int{d};
    }
  }
}

TEST(Bounds, AccumulatingInASmallerTypeFails) {
  for (const std::uint8_t d : {kUniform, kWide, kHuge}) {
    for (int seed = 0; seed < 5; ++seed) {
      const auto bf16 = Drawn<BF16>(problem::Type::kBf16, d, seed);
      EXPECT_GT((Judge<BF16, BF16, BF16>(bf16, Type::kF32, seed).wrong), 20) << int{d};
      const auto f16 = Drawn<F16>(problem::Type::kF16, d, seed);
      EXPECT_GT((Judge<F16, F16, F16>(f16, Type::kF32, seed).wrong), 20) << int{d};
      const auto f32 = Drawn<float>(problem::Type::kF32, d, seed);
      EXPECT_GT((Judge<float, BF16, float>(f32, Type::kF32, seed).wrong), 1900) << int{d};
      EXPECT_GT((Judge<float, F16, float>(f32, Type::kF32, seed).wrong), 1500) << int{d};
    }
  }
}

TEST(Bounds, ASmallerTypePassesWhereItIsStated) {
  for (std::uint8_t d = 0; d < judge::kMixtures; ++d) {
    const auto bf16 = Drawn<BF16>(problem::Type::kBf16, d, 1);
    EXPECT_EQ((Judge<BF16, BF16, BF16>(bf16, Type::kBf16, 1).wrong), 0) << int{d};
    const auto f32 = Drawn<float>(problem::Type::kF32, d, 1);
    EXPECT_EQ((Judge<float, BF16, float>(f32, Type::kBf16, 1).wrong), 0) << int{d};
  }
}

TEST(Bounds, AreNotLooseByMuch) {
  // One rounding of the output is used up nearly fully; of seven additions' worst case, a part.
  const auto bf16 = Drawn<BF16>(problem::Type::kBf16, kUniform, 2);
  EXPECT_GT((Judge<BF16, float, BF16>(bf16, Type::kF32, 2).worst), 0.9);
  const auto f32 = Drawn<float>(problem::Type::kF32, kUniform, 2);
  EXPECT_GT((Judge<float, float, float>(f32, Type::kF32, 2).worst), 0.15);
}

TEST(Bounds, IntegersAreExactInAnyOrder) {
  const auto f32 = Drawn<float>(problem::Type::kF32, 2, 3);
  EXPECT_LT((Judge<float, float, float>(f32, Type::kF32, 3).worst), 1e-9);
}

TEST(Bounds, DotProductsInF32PassAndInBf16Fail) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  constexpr int kTerms = 512;
  int wrong_f32 = 0, wrong_cut = 0, wrong_bf16 = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    double sum = 0, magnitude = 0;
    float f32 = 0, cut = 0;
    double bf16 = 0;
    for (int i = 0; i < kTerms; ++i) {
      const double a = ToDouble(Round<BF16>(uniform(random)));
      const double b = ToDouble(Round<BF16>(uniform(random)));
      sum += a * b;
      magnitude += std::abs(a * b);
      f32 += static_cast<float>(a * b);
      // As a tensor core that cuts off what does not fit.
      const double next = static_cast<double>(cut) + a * b;
      cut = static_cast<float>(next);
      if (std::abs(static_cast<double>(cut)) > std::abs(next)) cut = std::nextafter(cut, 0.0f);
      bf16 = ToDouble(Round<BF16>(bf16 + a * b));
    }
    const double bound = DotBudget(Type::kF32, Type::kF32, kTerms).Of(magnitude, sum);
    wrong_f32 += std::abs(f32 - sum) <= bound ? 0 : 1;
    wrong_cut += std::abs(cut - sum) <= bound ? 0 : 1;
    wrong_bf16 += std::abs(bf16 - sum) <= bound ? 0 : 1;
  }
  EXPECT_EQ(wrong_f32, 0);
  EXPECT_EQ(wrong_cut, 0);
  EXPECT_GT(wrong_bf16, 150);
}

TEST(Bounds, WeightedSumsWithAndWithoutFusionPass) {
  std::mt19937 random(8);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    double sum = 0, magnitude = 0;
    float apart = 0, fused = 0;
    for (int i = 0; i < 8; ++i) {
      const float w = uniform(random), x = uniform(random) - 0.5f;
      const double product = static_cast<double>(w) * x;
      sum += product;
      magnitude += std::abs(product);
      const float rounded = w * x;
      apart += rounded;
      fused = std::fma(w, x, fused);
    }
    const double bound = WeightedSumBudget(Type::kF32, Type::kF32, 8).Of(magnitude, sum);
    ASSERT_LE(std::abs(apart - sum), bound);
    ASSERT_LE(std::abs(fused - sum), bound);
  }
}

}  // namespace
}  // namespace allranks::oracle
