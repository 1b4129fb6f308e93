// Theory of operation.
//
// The value of a rate is a plain mean over problems. Its interval is the hull of two intervals:
//
// 1. The percentile cluster bootstrap. Whole families are drawn with replacement, as many as there
//    are, and the mean over their problems is taken. With G families that interval is too narrow
//    by the factor sqrt((G-1)/G) and by the ratio of Student's t to the normal quantile. Both are
//    made good by taking percentiles further out: Phi(-sqrt(G/(G-1)) t) instead of 2.5 %
//    (the "expanded percentile" of Hesterberg, arXiv:1411.5279).
// 2. Wilson's interval, with Student's t, for n = p(1-p)/SE^2 trials: the number of independent
//    trials that would have the standard error that the families show. The bootstrap cannot see
//    beyond what occurred, so near 0 and 1, where few families differ from the rest, it is too
//    short on one side; Wilson's is not. In the middle the two agree.
//
// Where no family differs from another there is no standard error: then the bounds are the exact
// ones (Clopper and Pearson) for as many trials as there are families, which is the truth if the
// members of a family always agree and cautious otherwise.
//
// A difference of two models is amount x (2 share - 1): the mean of its absolute values, and the
// part of them that is in favour of the first. Each is bounded as in 2., families being drawn once
// more: the amount's upper bound says how far the interval reaches on the other side of 0. The
// interval is the hull of this and of the bootstrap of the differences themselves. So two models
// that agree everywhere are not "equal to within 0".
//
// Whether an interval of a difference excludes 0 is decided by a test over families (SignFlipTest).
// It holds its level for any number of them if their differences are symmetric around 0 where
// neither model is better; many small gains against few large losses are not. Where hull and test
// disagree, the bound moves just across 0, so that interval and test always say the same.
#include "report/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "base/splitmix.h"

namespace allranks::report {
namespace {

constexpr double kNormal = 1.959963984540054;  // 97.5 %
constexpr double kSame = 1e-9;                 // values this near are rounding of the same
constexpr double kLevel = 0.05;                // of the test that decides over 0
constexpr double kJustBeyond = 1e-6;           // a bound that the test has moved across 0
constexpr std::size_t kEnumerated = 16;        // families whose signs are flipped in every way

struct Totals {
  std::vector<double> sums, sizes;  // by family
  double sum = 0, size = 0;
  double mean() const { return sum / size; }
};

Totals Add(const Families& values) {
  Totals totals;
  for (const std::vector<double>& family : values) {
    CHECK(!family.empty(), "a family without problems");
    double sum = 0;
    for (const double value : family) sum += value;
    totals.sums.push_back(sum);
    totals.sizes.push_back(static_cast<double>(family.size()));
    totals.sum += sum;
    totals.size += totals.sizes.back();
  }
  return totals;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t Below(std::size_t bound) {
    return static_cast<std::size_t>((SplitMix(state_ += kSplitMixStep) >> 32) * bound >> 32);
  }

 private:
  std::uint64_t state_;
};

// Widens `interval` to what the expanded percentiles of the bootstrap say.
void WidenByBootstrap(const Totals& totals, const Bootstrap& bootstrap, Interval* interval) {
  const std::size_t count = totals.sums.size();
  if (count < 2 || bootstrap.resamples < 1) return;
  std::vector<double> means(static_cast<std::size_t>(bootstrap.resamples));
  Random random(bootstrap.seed * kSplitMixStep + count);
  for (double& mean : means) {
    double sum = 0, size = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t family = random.Below(count);
      sum += totals.sums[family];
      size += totals.sizes[family];
    }
    mean = sum / size;
  }
  const double groups = static_cast<double>(count);
  const double reach =
      std::sqrt(groups / (groups - 1)) * StudentQuantile(static_cast<int>(count) - 1);
  const double tail = std::erfc(reach / std::sqrt(2.0)) / 2;
  const auto skip = static_cast<std::size_t>(tail * static_cast<double>(means.size()));
  std::sort(means.begin(), means.end());
  interval->low = std::min(interval->low, means[skip]);
  interval->high = std::max(interval->high, means[means.size() - 1 - skip]);
}

// Bounds as in 2. of the ratio of two sums over families, part and whole, 0 <= part <= whole.
// Families that agree count alike, however large: if all pass with chance p, all of G agree with
// chance p^G.
Interval RatioInterval(const std::vector<double>& part, const std::vector<double>& whole) {
  double parts = 0, wholes = 0, squares = 0;
  int families = 0;  // with a part in the ratio
  for (std::size_t f = 0; f < whole.size(); ++f) {
    if (whole[f] <= 0) continue;
    ++families;
    parts += part[f];
    wholes += whole[f];
    squares += whole[f] * whole[f];
  }
  if (families == 0) return {0, 0, 1};
  const double p = std::clamp(parts / wholes, 0.0, 1.0);
  double residuals = 0;
  for (std::size_t f = 0; f < whole.size(); ++f) {
    const double residual = part[f] - p * whole[f];
    residuals += residual * residual;
  }
  const double spread = p * (1 - p);
  if (families == 1 || spread < kSame || residuals < kSame * squares) {
    const double reach = 1 - std::pow(0.025, 1.0 / families);  // of no event in so many trials
    return {p, p * (1 - reach), p + (1 - p) * reach};
  }
  const double trials = spread * wholes * wholes * (families - 1) / (families * residuals);
  const double z = StudentQuantile(families - 1);
  const double z2 = z * z / trials;
  const double middle = (p + z2 / 2) / (1 + z2);
  const double half = std::sqrt(z2 * spread + z2 * z2 / 4) / (1 + z2);
  return {p, std::clamp(middle - half, 0.0, p), std::clamp(middle + half, p, 1.0)};
}

}  // namespace

double PassAtK(int n, int c, int k) {
  CHECK(1 <= k && k <= n && 0 <= c && c <= n, "n {}, c {}, k {}", n, c, k);
  if (n - c < k) return 1;
  double none = 1;  // as a product: the binomials themselves overflow
  for (int i = n - c + 1; i <= n; ++i) none *= 1 - static_cast<double>(k) / i;
  return 1 - none;
}

// The distribution function has a closed form for whole degrees (Abramowitz and Stegun 26.7.3,
// 26.7.4): A = P(-t < T < t). It grows with t, so halving finds where it is 95 %.
double StudentQuantile(int degrees) {
  CHECK(degrees >= 1, "degrees {}", degrees);
  if (degrees > 100'000) return kNormal;
  const auto within = [degrees](double t) {
    const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
    const double cos2 = std::cos(angle) * std::cos(angle);
    const bool odd = degrees % 2 == 1;
    double term = odd ? std::cos(angle) : 1, sum = degrees == 1 ? 0 : term;
    for (int k = odd ? 3 : 2; k <= degrees - 2; k += 2) {
      term *= cos2 * (k - 1) / k;
      sum += term;
    }
    const double product = std::sin(angle) * sum;
    return odd ? (angle + product) * 2 / M_PI : product;
  };
  double low = 0, high = 16;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (within(middle) < 0.95 ? low : high) = middle;
  }
  return (low + high) / 2;
}

Interval RateInterval(const Families& values, const Bootstrap& bootstrap) {
  if (values.empty()) return {0, 0, 1};
  const Totals totals = Add(values);
  Interval interval = RatioInterval(totals.sums, totals.sizes);
  WidenByBootstrap(totals, bootstrap, &interval);
  return interval;
}

Interval DifferenceInterval(const Families& differences, const Bootstrap& bootstrap) {
  if (differences.empty()) return {0, -1, 1};
  const Totals totals = Add(differences);
  std::vector<double> favourable, absolute;
  for (const std::vector<double>& family : differences) {
    double plus = 0, all = 0;
    for (const double value : family) {
      plus += std::max(value, 0.0);
      all += std::abs(value);
    }
    favourable.push_back(plus);
    absolute.push_back(all);
  }
  const Interval amount = RatioInterval(absolute, totals.sizes);
  const Interval share = RatioInterval(favourable, absolute);
  const auto bound = [&amount](double side) {  // side: 2 share - 1, as seen outwards
    return side * (side > 0 ? amount.high : amount.value);
  };
  Interval interval{totals.mean(), -bound(1 - 2 * share.low), bound(2 * share.high - 1)};
  WidenByBootstrap(totals, bootstrap, &interval);
  interval.low = std::clamp(interval.low, -1.0, interval.value);
  interval.high = std::clamp(interval.high, interval.value, 1.0);
  if (SignFlipTest(differences) >= kLevel) {
    interval.low = std::min(interval.low, 0.0);
    interval.high = std::max(interval.high, 0.0);
  } else if (interval.value > 0) {
    interval.low = std::max(interval.low, std::min(kJustBeyond, interval.value));
  } else {
    interval.high = std::min(interval.high, std::max(-kJustBeyond, interval.value));
  }
  return interval;
}

double SignFlipTest(const Families& differences) {
  std::vector<double> sums;  // of the families that differ: flipping the others changes nothing
  double all = 0, observed = 0;
  for (const std::vector<double>& family : differences) {
    double sum = 0;
    for (const double value : family) sum += value;
    if (std::abs(sum) < kSame) continue;
    sums.push_back(sum);
    observed += sum;
    all += std::abs(sum);
  }
  if (sums.empty()) return 1;
  // Equal sums in another order count as equal.
  const double least = std::abs(observed) - kSame * all;
  if (sums.size() <= kEnumerated) {
    // One flip leads from each pattern to the next (Gray code). The first sign stays: the mirror
    // image of a pattern is as far from 0.
    std::size_t count = 0;
    const std::size_t patterns = std::size_t{1} << (sums.size() - 1);
    double sum = observed;
    for (std::size_t i = 0;;) {
      count += std::abs(sum) >= least ? 1 : 0;
      if (++i == patterns) break;
      double& flipped = sums[static_cast<std::size_t>(std::countr_zero(i)) + 1];
      sum -= 2 * flipped;
      flipped = -flipped;
    }
    return static_cast<double>(count) / static_cast<double>(patterns);
  }
  constexpr int kDrawn = 5'000;
  std::uint64_t state = sums.size();
  int count = 1;  // the pattern that was seen
  for (int i = 0; i < kDrawn; ++i) {
    double sum = 0;
    std::uint64_t bits = 0;
    for (std::size_t f = 0; f < sums.size(); ++f, bits >>= 1) {
      if (f % 64 == 0) bits = SplitMix(state += kSplitMixStep);
      sum += (bits & 1) != 0 ? sums[f] : -sums[f];
    }
    count += std::abs(sum) >= least ? 1 : 0;
  }
  return static_cast<double>(count) / (kDrawn + 1);
}

double SignTest(int plus, int minus) {
  const int trials = plus + minus, most = std::max(plus, minus);
  if (trials == 0) return 1;
  double tail = 0;
  for (int k = most; k <= trials; ++k)
    tail += std::exp(std::lgamma(trials + 1.0) - std::lgamma(k + 1.0) -
                     std::lgamma(trials - k + 1.0) - trials * std::log(2.0));
  return std::min(1.0, 2 * tail);
}

}  // namespace allranks::report
