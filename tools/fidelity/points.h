// The published points that the node's times are compared with, read from points.toml. An
// experiment is one program with one way of measuring; its points are sizes with the time that was
// measured on hardware. Whether an experiment took part in the fit of the profiles' constants, and
// with which of its sizes, is part of the data.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace allranks::fidelity {

struct Point {
  double size = 0;       // in the experiment's own unit
  double published = 0;  // microseconds
  bool fitted = false;   // took part in the fit
  bool quick = false;    // part of --quick
  double simulated = 0;  // microseconds on the node; 0 until measured
};

struct Experiment {
  std::string name;
  std::string platform;   // of the published figures
  std::string profile;    // that stands for it
  std::string program;    // under programs/, without the suffix
  std::string variant;    // the program's first argument
  std::string operation;  // experiments with the same one are schemes for the same thing
  std::string size_unit;
  double bytes_per_size = 0;  // to find equal sizes among schemes; 0: sizes are not bytes
  bool fitted = false;
  bool bandwidth = false;  // its largest size counts as large-message bandwidth on 8 devices
  std::string source, measured;
  std::vector<Point> points;
};

// A constant of a profile that was fitted, and on what.
struct Parameter {
  std::string profile, key, fitted_on;
  double value = 0;
};

struct Points {
  std::vector<Experiment> experiments;
  std::vector<Parameter> parameters;
};

// Reads the table, and the parameters' values from the profiles in `profiles`.
Result<Points> LoadPoints(const std::string& path, const std::string& profiles);

}  // namespace allranks::fidelity
