// Runs the experiments on the virtual node.
#pragma once

#include <string>

#include "fidelity/points.h"

namespace allranks::fidelity {

struct Places {
  std::string allranks;  // the command
  std::string programs;  // folder of the built experiments
  std::string profiles;  // folder of the profiles
};

// Fills in `simulated` of every point, several experiments at a time; with `quick` only of the
// points marked so. What a program prints to stderr is passed on.
Result<void> Measure(Points& points, const Places& places, bool quick, int jobs);

// The same from what an earlier run printed with --json.
Result<void> Recall(Points& points, const std::string& path);

}  // namespace allranks::fidelity
