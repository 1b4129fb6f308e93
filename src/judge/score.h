// Figures that sum up a judgement: fractions of the roofline, and ratios of times.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "judge/judge.h"

namespace allranks::judge {

// The part of the roofline that a time reaches: at most 1, and 0 for a time that is none.
double RooflineFraction(double roofline_ns, double call_ns);

// nullopt without values; 0 if one of them is 0.
std::optional<double> GeometricMean(std::span<const double> values);

// By what a rank takes in or gives out in a call, whichever is more: less than 64 KiB, less than
// 4 MiB, or more.
enum class SizeClass { kSmall, kMedium, kLarge };
SizeClass SizeClassOf(const problem::Problem& problem, const problem::Case& one);

// Geometric mean of RooflineFraction over the timed cases of each class of sizes, then over the
// classes, so that each weighs alike; 0 if a timed case did not pass or there are none.
double Score(const problem::Problem& problem, std::span<const CaseResult> cases);

// How much quicker than the reference, the baseline and NCCL, over the timed cases of which both
// times are known: their time / this time. nullopt: there is no such case.
std::optional<double> SpeedupOverReference(std::span<const CaseResult> cases);
std::optional<double> SpeedupOverBaseline(std::span<const CaseResult> cases);
std::optional<double> SpeedupOverNccl(std::span<const CaseResult> cases);

// Two judgements case by case: the cases that both ran, in the order of `a`.
struct Comparison {
  struct Row {
    std::string name;
    double a_ns = 0, b_ns = 0;
    double speedup = 0;  // a_ns / b_ns: above 1, b is quicker
  };
  std::vector<Row> rows;
  std::optional<double> speedup;  // geometric mean over timed cases that pass in both
};
Comparison Compare(const Judgement& a, const Judgement& b);

}  // namespace allranks::judge
