// Scores of runs, as data: everything that tables, plots, pages and summary.json show.
// docs/scores.md defines each figure; statistics.h has the estimators.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "campaign/record.h"
#include "report/statistics.h"

namespace allranks::report {

inline constexpr int kSummarySchema = 1;

// Where fast_p over the reference is computed: p = 0, 0.05 .. 2.
inline constexpr int kFastSteps = 40, kFastStepsPerUnit = 20;

// How far modelled times may be trusted; a test compares it with docs/fidelity.md.
inline constexpr char kHeldOut[] =
    "12.1 % on average on published experiments that took no part in the fit, which are of b300x8 "
    "and gh200 (docs/fidelity.md)";

struct Options {
  std::string title = "AllRanks";
  std::vector<std::string> panel;  // models whose pass rates define difficulty; empty: all
  int resamples = 2000;
  std::uint64_t seed = 1;  // of the bootstrap: the same runs give the same intervals
  std::string held_out = kHeldOut;
  std::map<std::string, std::string> validated;  // profile's name: its node::Profile::validated
  bool private_texts = false;  // the page has texts of problems that are not public, too
  std::function<void(const std::string& step)>
      on_step;  // when WriteReport begins one; may be empty
};

// Figures of one model over a set of problems. A rate is a mean over problems of means over
// samples. A sample whose first round is `unsupported` or `internal_error` counts nowhere, and a
// problem without another sample neither.
struct Figures {
  int problems = 0, samples = 0, families = 0;
  Interval strict_pass;              // round 1: pass@1
  Interval score;                    // round 1: strict x min(1, roofline fraction)
  Interval lenient_pass;             // round 1
  Interval pass_within;              // any round of a sample
  Interval score_within;             // the best round of a sample
  double pass_plus_good = 0;         // strict, and not slower than 5 % behind the reference
  std::optional<double> gm_speedup;  // over the reference: passes x timed cases
  double pass_x_gm = 0;              // strict_pass x gm_speedup
  std::map<int, double> pass_at;     // unbiased pass@k, k = 1 .. fewest samples, at most 100
  std::map<std::string, std::map<int, double>>
      fast;  // "0.5" "1" "1.5" "2": fast_p@k over the baseline
};

struct ModelSummary {
  campaign::ModelFacts facts;
  std::string label;          // facts.name, or NAME (RUN) where that is not unique
  std::string run;            // its name
  std::size_t run_index = 0;  // in Summary::runs
  int rank_group = 1;         // 1: nobody is better beyond doubt
  Figures all;
  // category level library parallelism family split: value: figures
  std::map<std::string, std::map<std::string, Figures>> by;
  std::map<std::string, int> verdicts;  // round 1, all finished samples
  std::vector<std::map<std::string, int>> verdicts_by_round;
  std::vector<Interval> pass_within_round, score_within_round;  // by number of rounds, from 1
  // By p, of kFastSteps: the rate of strict passes of round 1 that are at least p times as fast as
  // the reference.
  std::vector<double> fast_reference;
  // Strict passes of round 1: better on_par degraded severely_degraded unresolved.
  std::map<std::string, int> classes;
  std::map<std::string, double> moved;  // bytes by mover, per burst: mean over passes x timed cases
  double dollars = 0;                   // of the replies of finished samples
  std::optional<double> dollars_per_problem;  // one sample with all its rounds
  std::optional<double> dollars_per_pass;     // dollars / samples that pass in any round
  model::Usage usage;
  int finished = 0, unfinished = 0, planned = 0;  // samples
  int unsupported = 0, internal_errors = 0;       // of the finished: round 1, excluded
  double unsupported_rate = 0;                    // of the finished
  // The score if `unsupported` were a failure: no choice of means can raise it by being excluded.
  double score_if_unsupported_fails = 0;
};

// The difference of two models over the problems that both have. Only models of the same profile
// are paired.
struct Pair {
  std::string a, b;  // labels; a stands before b in Summary::models
  int problems = 0;
  Interval strict_pass, score;  // a - b
};

struct ProblemSummary {
  campaign::ProblemFacts facts;
  std::optional<double> difficulty;  // 1 - the panel's pass@1
  struct Cell {
    double strict_pass = 0, score = 0, pass_within = 0, score_within = 0;
    int samples = 0;
  };
  std::map<std::string, Cell> models;  // by label; without a counted sample there is none
};

struct Summary {
  Options options;
  std::vector<campaign::Settings> runs;
  std::vector<ModelSummary> models;  // best first: strict pass, then score; by profile if several
  std::vector<Pair> pairs;
  std::vector<ProblemSummary> problems;
  double dollars = 0;              // all that the runs say
  double dollars_elsewhere = 0;    // of it, in no model's: attempts that failed, unfinished samples
  std::vector<std::string> times;  // "Times are modelled ...": belongs beside every figure of time
  std::vector<std::string> notes;  // what a reader must know before believing a rank
};

// Models of the same name in several runs are told apart as NAME (RUN). Fails without runs.
Result<Summary> Summarise(const std::vector<campaign::Run>& runs, const Options& options);

std::string ToJson(const Summary& summary);  // summary.json
std::string ModelsCsv(const Summary& summary);
std::string ProblemsCsv(const Summary& summary);
std::string CasesCsv(const std::vector<campaign::Run>& runs);  // one row per round and case
std::string ToTable(const Summary& summary);                   // the leaderboard, for a terminal

}  // namespace allranks::report
