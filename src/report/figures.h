// One model's samples by problem, and the figures of a set of its problems: what summary.cpp and
// compare.cpp are made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "campaign/record.h"
#include "report/summary.h"

namespace allranks::report {

// A problem and those of its samples that count: with a first round that is neither `unsupported`
// nor `internal_error`.
struct Answered {
  const campaign::ProblemFacts* facts = nullptr;
  std::vector<const campaign::Sample*> samples;
};

// Finished samples of one model, before and after the exclusions.
struct ModelSamples {
  std::vector<Answered> problems;                 // at least one counted sample each
  std::vector<const campaign::Sample*> finished;  // all with a first round
};
ModelSamples SamplesOf(const campaign::Run& run, const std::string& model);

bool Excluded(const campaign::Round& first);
double RoundScore(const campaign::Round& round);  // strict x min(1, roofline fraction)

// What is averaged: of one sample, over its first `rounds` rounds.
bool PassWithin(const campaign::Sample& sample, int rounds);
double ScoreWithin(const campaign::Sample& sample, int rounds);
inline constexpr int kAllRounds = 1 << 30;

enum class Metric { kStrictPass, kScore, kLenientPass, kPassWithin, kScoreWithin };
inline constexpr Metric kMetrics[] = {Metric::kStrictPass, Metric::kScore, Metric::kLenientPass,
                                      Metric::kPassWithin, Metric::kScoreWithin};
const char* NameOf(Metric metric);  // strict_pass score lenient_pass pass_within score_within
// The mean over the problem's samples.
double MeanOf(Metric metric, const Answered& problem);

// Problems' values by family, in the order of the families' names.
Families ByFamily(const std::vector<std::pair<std::string_view, double>>& values);

Figures FiguresOf(const std::vector<const Answered*>& problems, const Bootstrap& bootstrap);

// ModelSummary::fast_reference.
std::vector<double> FastOverReference(const std::vector<Answered>& problems);

// better on_par degraded severely_degraded, or unresolved unless all perturbed profiles agree.
std::string ClassOf(const campaign::Round& round);

}  // namespace allranks::report
