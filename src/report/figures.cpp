// Which samples count, what is averaged over them, and the figures of the literature beside it.
// docs/scores.md has the formulas.
#include "report/figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace allranks::report {
namespace {

constexpr double kBetter = 1.2, kOnPar = 0.95, kDegraded = 0.6;  // speedup over the reference
constexpr double kAsFast = 0.999;  // times as fast: the reference itself comes to 0.9999
constexpr int kMostK = 100;  // a run of thousands of samples should not take minutes to sum up
constexpr std::pair<const char*, double> kFast[] = {{"0.5", 0.5}, {"1", 1}, {"1.5", 1.5}, {"2", 2}};

// What a file says may be anything that JSON can say.
double Fraction(double value) { return std::isfinite(value) ? std::clamp(value, 0.0, 1.0) : 0; }

const char* ClassOfSpeedup(double speedup) {
  if (!std::isfinite(speedup) || speedup <= 0) return "unresolved";
  return speedup >= kBetter     ? "better"
         : speedup >= kOnPar    ? "on_par"
         : speedup >= kDegraded ? "degraded"
                                : "severely_degraded";
}

// Samples of a problem of which `good` says so.
template <class Good>
int Count(const Answered& problem, const Good& good) {
  return static_cast<int>(
      std::count_if(problem.samples.begin(), problem.samples.end(),
                    [&](const campaign::Sample* sample) { return good(sample->rounds.front()); }));
}

// The mean over problems of the unbiased estimator, for each k that every problem has samples for.
template <class Good>
std::map<int, double> AtK(const std::vector<const Answered*>& problems, int fewest,
                          const Good& good) {
  std::map<int, double> at;
  for (int k = 1; k <= std::min(fewest, kMostK); ++k) {
    double sum = 0;
    for (const Answered* problem : problems)
      sum += PassAtK(static_cast<int>(problem->samples.size()), Count(*problem, good), k);
    at[k] = sum / static_cast<double>(problems.size());
  }
  return at;
}

std::optional<double> GmSpeedup(const std::vector<const Answered*>& problems) {
  double sum = 0;
  int count = 0;
  for (const Answered* problem : problems) {
    for (const campaign::Sample* sample : problem->samples) {
      if (!sample->rounds.front().strict) continue;
      for (const campaign::CaseFigures& one : sample->rounds.front().cases) {
        if (one.kind != "timed" || !(one.reference_ns > 0) || !(one.call_ns > 0)) continue;
        sum += std::log(one.reference_ns / one.call_ns);
        ++count;
      }
    }
  }
  if (count == 0 || !std::isfinite(sum)) return std::nullopt;
  return std::exp(sum / count);
}

}  // namespace

bool Excluded(const campaign::Round& first) {
  return first.verdict == "unsupported" || first.verdict == "internal_error";
}

double RoundScore(const campaign::Round& round) { return round.strict ? Fraction(round.score) : 0; }

bool PassWithin(const campaign::Sample& sample, int rounds) {
  return std::any_of(
      sample.rounds.begin(), sample.rounds.end(),
      [rounds](const campaign::Round& round) { return round.round <= rounds && round.strict; });
}

double ScoreWithin(const campaign::Sample& sample, int rounds) {
  double best = 0;
  for (const campaign::Round& round : sample.rounds)
    if (round.round <= rounds) best = std::max(best, RoundScore(round));
  return best;
}

const char* NameOf(Metric metric) {
  switch (metric) {
    case Metric::kStrictPass:
      return "strict_pass";
    case Metric::kScore:
      return "score";
    case Metric::kLenientPass:
      return "lenient_pass";
    case Metric::kPassWithin:
      return "pass_within";
    case Metric::kScoreWithin:
      return "score_within";
  }
  return "";
}

double MeanOf(Metric metric, const Answered& problem) {
  double sum = 0;
  for (const campaign::Sample* sample : problem.samples) {
    const campaign::Round& first = sample->rounds.front();
    switch (metric) {
      case Metric::kStrictPass:
        sum += first.strict ? 1 : 0;
        break;
      case Metric::kScore:
        sum += RoundScore(first);
        break;
      case Metric::kLenientPass:
        sum += first.lenient || first.strict ? 1 : 0;
        break;
      case Metric::kPassWithin:
        sum += PassWithin(*sample, kAllRounds) ? 1 : 0;
        break;
      case Metric::kScoreWithin:
        sum += ScoreWithin(*sample, kAllRounds);
        break;
    }
  }
  return sum / static_cast<double>(problem.samples.size());
}

Families ByFamily(const std::vector<std::pair<std::string_view, double>>& values) {
  std::map<std::string_view, std::vector<double>> families;
  for (const auto& [family, value] : values) families[family].push_back(value);
  Families result;
  for (auto& [family, members] : families) result.push_back(std::move(members));
  return result;
}

ModelSamples SamplesOf(const campaign::Run& run, const std::string& model) {
  ModelSamples result;
  std::map<std::string_view, Answered> by_slug;
  for (const campaign::ProblemFacts& facts : run.settings.problems)
    by_slug[facts.slug].facts = &facts;
  for (const campaign::Sample& sample : run.samples) {
    if (sample.model != model || sample.rounds.empty()) continue;
    const auto answered = by_slug.find(sample.problem);
    if (answered == by_slug.end()) continue;
    result.finished.push_back(&sample);
    if (!Excluded(sample.rounds.front())) answered->second.samples.push_back(&sample);
  }
  for (const campaign::ProblemFacts& facts : run.settings.problems)
    if (Answered& answered = by_slug[facts.slug]; !answered.samples.empty())
      result.problems.push_back(std::move(answered));
  return result;
}

std::vector<double> FastOverReference(const std::vector<Answered>& problems) {
  std::vector<double> shares(kFastSteps + 1);
  for (const Answered& problem : problems) {
    const double weight =
        1 / (static_cast<double>(problem.samples.size()) * static_cast<double>(problems.size()));
    for (const campaign::Sample* sample : problem.samples) {
      const campaign::Round& first = sample->rounds.front();
      if (!first.strict) continue;
      const double speedup = first.speedup_vs_reference.value_or(0);
      for (int i = 0; i <= kFastSteps; ++i)  // 0 of anything is reached by every pass
        if (i == 0 || speedup >= kAsFast * static_cast<double>(i) / kFastStepsPerUnit)
          shares[static_cast<std::size_t>(i)] += weight;
    }
  }
  return shares;
}

std::string ClassOf(const campaign::Round& round) {
  if (round.band.empty() || !round.speedup_vs_reference) return "unresolved";
  std::string name = ClassOfSpeedup(*round.speedup_vs_reference);
  for (const double speedup : round.band)
    if (ClassOfSpeedup(speedup) != name) return "unresolved";
  return name;
}

Figures FiguresOf(const std::vector<const Answered*>& problems, const Bootstrap& bootstrap) {
  Figures figures;
  figures.problems = static_cast<int>(problems.size());
  Interval* const intervals[] = {&figures.strict_pass, &figures.score, &figures.lenient_pass,
                                 &figures.pass_within, &figures.score_within};
  for (std::size_t m = 0; m < std::size(kMetrics); ++m) {
    std::vector<std::pair<std::string_view, double>> values;
    for (const Answered* problem : problems)
      values.emplace_back(problem->facts->family, MeanOf(kMetrics[m], *problem));
    const Families families = ByFamily(values);
    figures.families = static_cast<int>(families.size());
    *intervals[m] = RateInterval(families, bootstrap);
  }
  if (problems.empty()) return figures;

  int fewest = std::numeric_limits<int>::max();
  for (const Answered* problem : problems) {
    const int samples = static_cast<int>(problem->samples.size());
    figures.samples += samples;
    fewest = std::min(fewest, samples);
    const int good = Count(*problem, [](const campaign::Round& round) {
      return round.strict && round.speedup_vs_reference.value_or(0) >= kOnPar;
    });
    figures.pass_plus_good += static_cast<double>(good) / samples / figures.problems;
  }
  figures.pass_at =
      AtK(problems, fewest, [](const campaign::Round& round) { return round.strict; });
  for (const auto& [name, least] : kFast)
    figures.fast[name] = AtK(problems, fewest, [bound = least](const campaign::Round& round) {
      return round.strict && round.speedup_vs_baseline.value_or(0) > bound;
    });
  figures.gm_speedup = GmSpeedup(problems);
  figures.pass_x_gm = figures.strict_pass.value * figures.gm_speedup.value_or(0);
  return figures;
}

}  // namespace allranks::report
