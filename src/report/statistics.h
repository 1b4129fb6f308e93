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

// The mean over problems of paired differences, values in -1 .. 1. Never of width 0.
Interval DifferenceInterval(const Families& differences, const Bootstrap& bootstrap);

// The 97.5 % point of Student's t; 1 <= degrees.
double StudentQuantile(int degrees);

// Exact two-sided sign test: the chance that fair coins fall at least as unevenly as `plus` to
// `minus`. With one sample per problem this is McNemar's exact test. 1 without a difference.
double SignTest(int plus, int minus);

}  // namespace allranks::report
