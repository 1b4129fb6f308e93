// Estimators over samples and problems. docs/scores.md says why these; tests/report checks them
// against closed forms and by simulation.
//
// Problems of one family share tricks: a model that solves one tends to solve the others. So what
// is drawn, counted and corrected for here are families, never problems.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace allranks::report {

struct Interval {  // 95 %; 0 in 0 .. 1 without a problem
  double value = 0, low = 0, high = 0;
};

// The chance that at least one of k samples drawn without replacement from n, of which c are good,
// is good: 1 - C(n-c, k) / C(n, k). Unbiased for the chance of k fresh samples. 1 <= k <= n.
double PassAtK(int n, int c, int k);

// One figure per problem, by family: problems[f] are the values of family f. No family is empty.
using Families = std::vector<std::vector<double>>;

struct Bootstrap {
  int resamples = 2000;
  std::uint64_t seed = 1;  // the same seed draws the same families for the same number of them
};

// The mean over problems of values in 0 .. 1. Never of width 0.
Interval RateInterval(const Families& values, const Bootstrap& bootstrap);

// The mean over problems of paired differences, values in -1 .. 1. Never of width 0. Excludes 0
// just where SignFlipTest is below 0.05.
Interval DifferenceInterval(const Families& differences, const Bootstrap& bootstrap);

// The two-sided sign-flip test over families: the share of all ways to choose the signs of the
// families' sums of differences of which the total is at least as far from 0. All ways up to 16
// families that differ; of more, 5,000 are drawn, always the same. 1 without a difference.
//
// It assumes that a family's difference is distributed symmetrically around 0 if neither model is
// better: then at most 5 % of equal models have a value below 0.05. Without symmetry it does not
// hold that: 0.1 with chance 0.9 and -0.9 with chance 0.1 has mean 0, and of 8 such families all
// are above 0, which is 0.008, in 43 % of cases.
double SignFlipTest(const Families& differences);

// With fewer families the test cannot fall below 0.05: 2 of 2^5 ways are 0.0625.
inline constexpr int kFewestFamilies = 6;

// The 97.5 % point of Student's t; 1 <= degrees.
double StudentQuantile(int degrees);

// Exact two-sided sign test: the chance that fair coins fall at least as unevenly as `plus` to
// `minus`. With one sample per problem this is McNemar's exact test. 1 without a difference.
double SignTest(int plus, int minus);

}  // namespace allranks::report
