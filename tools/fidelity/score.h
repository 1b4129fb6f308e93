// How far the simulated times are from the published ones, in the terms of the goals: other sizes
// of fitted experiments, experiments never fitted, the order of schemes, large messages.
#pragma once

#include <string>
#include <vector>

#include "fidelity/points.h"

namespace allranks::fidelity {

// Relative error of a measured point, with its sign.
double ErrorOf(const Point& point);

// Mean of |error| over an experiment's measured points; with `others` only over those not fitted.
struct Mean {
  double value = 0;
  int count = 0;
};
Mean MeanError(const Experiment& experiment, bool others);

// Two schemes for the same operation, bytes and platform whose published times differ by more than
// a fifth.
struct Pair {
  std::string faster, slower;  // as published: "experiment at size unit"
  double published_ratio = 0, simulated_ratio = 0;
  bool right() const { return simulated_ratio > 1; }
};

struct Score {
  int points = 0, experiments = 0;
  int fitted = 0, held_out = 0;  // experiments
  int platforms = 0;
  Mean fitted_sizes;         // of the points that were fitted
  Mean other_sizes;          // of fitted experiments
  Mean never_fitted;         // mean over experiments of their mean
  Mean never_fitted_points;  // mean over their points
  Mean large_messages;       // largest size of experiments marked `bandwidth`
  double worst_large = 0;
  std::vector<Pair> pairs;
  double order = 1;  // share of pairs whose order is right
};

Score ScoreOf(const Points& points);

}  // namespace allranks::fidelity
