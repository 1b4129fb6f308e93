// Scores of runs, as data: everything that tables, plots, pages and summary.json show.
// docs/scores.md defines each figure; statistics.h has the estimators.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "campaign/record.h"

namespace allranks::report {

inline constexpr int kSummarySchema = 1;

struct Options {
  std::string title = "AllRanks";
  std::vector<std::string> panel;  // models whose pass rates define difficulty; empty: all
  int resamples = 2000;
  std::uint64_t seed = 1;  // of the bootstrap: the same runs give the same intervals
  std::string held_out;    // of the profile's times, for people: "12.1 % (docs/fidelity.md)"
};

struct Interval {  // 95 %
  double value = 0, low = 0, high = 0;
};

// Figures of one model over a set of problems. A rate is a mean over problems of means over
// samples.
struct Figures {
  int problems = 0, samples = 0;
  Interval strict_pass;              // round 1: pass@1
  Interval score;                    // round 1: strict x min(1, roofline fraction)
  Interval lenient_pass;             // round 1
  Interval pass_within;              // any round of a sample
  Interval score_within;             // the best round of a sample
  double pass_plus_good = 0;         // strict, and not slower than 5 % behind the reference
  std::optional<double> gm_speedup;  // over the reference: passes x timed cases
  double pass_x_gm = 0;              // strict_pass x gm_speedup
  std::map<int, double> pass_at;     // unbiased pass@k, k = 1 .. fewest samples of a problem
  std::map<std::string, std::map<int, double>>
      fast;  // "0.5" "1" "1.5" "2": fast_p@k over the baseline
};

struct ModelSummary {
  campaign::ModelFacts facts;
  std::string run;
  int rank_group = 1;  // 1: nobody is better beyond doubt
  Figures all;
  std::map<std::string, std::map<std::string, Figures>> by;  // category level library parallelism
                                                             // family: value: figures
  std::map<std::string, int> verdicts;                       // round 1, samples
  std::vector<std::map<std::string, int>> verdicts_by_round;
  std::vector<Interval> pass_within_round, score_within_round;  // by number of rounds, from 1
  std::map<std::string, int> classes;   // better on_par degraded severely_degraded unresolved
  std::map<std::string, double> moved;  // bytes by mover, of passes, per call
  double dollars = 0, wasted_dollars = 0;
  model::Usage usage;
  double unsupported_rate = 0;  // of samples; excluded from every rate
  int internal_errors = 0, unfinished = 0;
};

struct Pair {  // the difference of two models' scores over the same problems
  std::string a, b;
  Interval strict_pass, score;  // a - b
};

struct ProblemSummary {
  campaign::ProblemFacts facts;
  std::optional<double> difficulty;  // 1 - the panel's pass@1
  struct Cell {
    double strict_pass = 0, score = 0, pass_within = 0, score_within = 0;
    int samples = 0;
  };
  std::map<std::string, Cell> models;
};

struct Summary {
  Options options;
  std::vector<campaign::Settings> runs;
  std::vector<ModelSummary> models;  // best first: score, then strict pass
  std::vector<Pair> pairs;
  std::vector<ProblemSummary> problems;
};

// Models of the same name in several runs are told apart as NAME (RUN).
Result<Summary> Summarise(const std::vector<campaign::Run>& runs, const Options& options);

std::string ToJson(const Summary& summary);  // summary.json
std::string ModelsCsv(const Summary& summary);
std::string ProblemsCsv(const Summary& summary);
std::string CasesCsv(const std::vector<campaign::Run>& runs);  // one row per round and case
std::string ToTable(const Summary& summary);                   // the leaderboard, for a terminal

}  // namespace allranks::report
