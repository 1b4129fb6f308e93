// Errors, means and the order of schemes. See score.h.
#include "fidelity/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace allranks::fidelity {

namespace {

bool Measured(const Point& point) { return point.simulated > 0; }

void Add(Mean& mean, double value) {
  mean.value = (mean.value * mean.count + value) / (mean.count + 1);
  ++mean.count;
}

constexpr double kDiffer = 1.2;     // published times of a pair that counts
constexpr double kSameSize = 0.02;  // 8 MiB and 8.4 MB are the same size

void AddPairs(const Experiment& a, const Experiment& b, std::vector<Pair>& pairs) {
  if (a.operation != b.operation || a.platform != b.platform) return;
  if (a.bytes_per_size == 0 || b.bytes_per_size == 0) return;
  for (const Point& p : a.points) {
    for (const Point& q : b.points) {
      if (!Measured(p) || !Measured(q)) continue;
      const double bytes = p.size * a.bytes_per_size, others = q.size * b.bytes_per_size;
      if (std::abs(bytes - others) > kSameSize * bytes) continue;
      const bool first = p.published < q.published;
      const Point& fast = first ? p : q;
      const Point& slow = first ? q : p;
      if (slow.published <= kDiffer * fast.published) continue;
      Pair pair;
      pair.faster = fmt::format("{} at {:g} bytes", (first ? a : b).name, bytes);
      pair.slower = (first ? b : a).name;
      pair.published_ratio = slow.published / fast.published;
      pair.simulated_ratio = slow.simulated / fast.simulated;
      pairs.push_back(pair);
    }
  }
}

}  // namespace

double ErrorOf(const Point& point) { return point.simulated / point.published - 1; }

Mean MeanError(const Experiment& experiment, bool others) {
  Mean mean;
  for (const Point& point : experiment.points) {
    if (Measured(point) && !(others && point.fitted)) Add(mean, std::abs(ErrorOf(point)));
  }
  return mean;
}

Score ScoreOf(const Points& points) {
  Score score;
  std::set<std::string> platforms;
  for (const Experiment& experiment : points.experiments) {
    const Mean mean = MeanError(experiment, false);
    if (mean.count == 0) continue;
    ++score.experiments;
    ++(experiment.fitted ? score.fitted : score.held_out);
    platforms.insert(experiment.platform);
    if (!experiment.fitted) Add(score.never_fitted, mean.value);
    const Point* largest = nullptr;
    for (const Point& point : experiment.points) {
      if (!Measured(point)) continue;
      ++score.points;
      const double error = std::abs(ErrorOf(point));
      if (!experiment.fitted)
        Add(score.never_fitted_points, error);
      else
        Add(point.fitted ? score.fitted_sizes : score.other_sizes, error);
      if (largest == nullptr || point.size > largest->size) largest = &point;
    }
    if (experiment.bandwidth) {
      // Bandwidth is bytes over time: its error is that of the inverse.
      const double error = std::abs(largest->published / largest->simulated - 1);
      Add(score.large_messages, error);
      score.worst_large = std::max(score.worst_large, error);
    }
  }
  score.platforms = int(platforms.size());
  for (std::size_t i = 0; i < points.experiments.size(); ++i) {
    for (std::size_t j = i + 1; j < points.experiments.size(); ++j)
      AddPairs(points.experiments[i], points.experiments[j], score.pairs);
  }
  if (!score.pairs.empty()) {
    const auto right = std::count_if(score.pairs.begin(), score.pairs.end(),
                                     [](const Pair& pair) { return pair.right(); });
    score.order = double(right) / double(score.pairs.size());
  }
  return score;
}

}  // namespace allranks::fidelity
