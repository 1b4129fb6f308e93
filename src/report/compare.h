// Two runs against each other: models in pairs, problem by problem, with intervals of the
// differences clustered by family. `allranks compare` prints it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "campaign/record.h"
#include "report/figures.h"

namespace allranks::report {

// Every difference is B's figure less A's.
struct Compared {
  std::string model_a, model_b;
  int problems = 0, families = 0;    // that both have, in the same wording
  int samples_a = 0, samples_b = 0;  // of these problems, as far as they count
  int only_a = 0, only_b = 0;        // problems with counted samples on one side
  int reworded = 0;                  // asked on both sides, with another hash

  struct Row {
    Metric metric = Metric::kScore;
    double a = 0, b = 0;
    Interval difference;
    double p = 1;      // SignFlipTest
    std::string word;  // B is better | worse; no difference shown; too few families
  };
  std::vector<Row> metrics;  // in the order of kMetrics

  // Sign tests on pass@1: over problems (McNemar's exact test if there is one sample each), and
  // over families, which is what dependence within a family leaves of it.
  struct Signs {
    int better = 0, worse = 0, equal = 0;
    double p = 1;
  };
  Signs by_problem, by_family;

  struct Problem {
    std::string slug, family;
    double pass_a = 0, pass_b = 0, score_a = 0, score_b = 0;
    double within_a = 0, within_b = 0;  // pass in any round
  };
  std::vector<Problem> different;  // largest difference of scores first
};

struct Comparison {
  campaign::Settings a, b;
  Bootstrap bootstrap;
  std::vector<Compared> pairs;
  std::vector<std::string> notes;  // in what else the runs differ
};

// `models`: the model of A and that of B; empty: those of the same name, or the only one of each.
// The message of a failure lists the models there are.
Result<Comparison> Compare(const campaign::Run& a, const campaign::Run& b,
                           const std::vector<std::string>& models, const Bootstrap& bootstrap);

std::string ToJson(const Comparison& comparison);
std::string ToTable(const Comparison& comparison);

}  // namespace allranks::report
