// From runs to a Summary: which models there are, what each of them reached, and which differ
// beyond doubt. figures.cpp has the figures of one model, notes.cpp the words beside them.
#include "report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "report/figures.h"
#include "report/notes.h"

namespace allranks::report {
namespace {

constexpr int kMostRounds = 64;  // in tables: run.json may say anything

struct Work {  // a model while its summary is made
  ModelSummary summary;
  ModelSamples samples;
  std::string profile;  // hash: only models of the same are ranked against each other
};

std::vector<std::pair<std::string, std::vector<std::string>>> DimensionsOf(
    const campaign::ProblemFacts& facts) {
  return {{"category", {facts.category}},
          {"level", {facts.level}},
          {"library", {facts.library}},
          {"parallelism",
           facts.parallelism.empty() ? std::vector<std::string>{"none"} : facts.parallelism},
          {"family", {facts.family}},
          {"split", {facts.split}}};
}

// Rates over the first 1, 2, .. rounds.
void AddRounds(const ModelSamples& samples, int rounds, const Bootstrap& bootstrap,
               ModelSummary* model) {
  for (int r = 1; r <= std::min(rounds, kMostRounds); ++r) {
    std::vector<std::pair<std::string_view, double>> pass, score;
    for (const Answered& problem : samples.problems) {
      double passes = 0, scores = 0;
      for (const campaign::Sample* sample : problem.samples) {
        passes += PassWithin(*sample, r) ? 1 : 0;
        scores += ScoreWithin(*sample, r);
      }
      const double count = static_cast<double>(problem.samples.size());
      pass.emplace_back(problem.facts->family, passes / count);
      score.emplace_back(problem.facts->family, scores / count);
    }
    model->pass_within_round.push_back(RateInterval(ByFamily(pass), bootstrap));
    model->score_within_round.push_back(RateInterval(ByFamily(score), bootstrap));
  }
}

double ScoreIfUnsupportedFails(const ModelSamples& samples) {
  std::map<std::string_view, std::pair<double, int>> problems;  // sum of scores, samples
  for (const campaign::Sample* sample : samples.finished) {
    const campaign::Round& first = sample->rounds.front();
    if (Excluded(first) && first.verdict != "unsupported") continue;
    auto& [sum, count] = problems[sample->problem];
    sum += Excluded(first) ? 0 : RoundScore(first);
    ++count;
  }
  double mean = 0;
  for (const auto& [problem, scores] : problems)
    mean += scores.first / scores.second / static_cast<double>(problems.size());
  return mean;
}

// Verdicts, classes, bytes and money: counts over samples.
void AddCounts(const ModelSamples& samples, ModelSummary* model) {
  int passes = 0, timed = 0;
  for (const campaign::Sample* sample : samples.finished) {
    const campaign::Round& first = sample->rounds.front();
    ++model->verdicts[first.verdict];
    if (first.verdict == "unsupported") ++model->unsupported;
    if (first.verdict == "internal_error") ++model->internal_errors;
    passes += PassWithin(*sample, kAllRounds) ? 1 : 0;
    for (std::size_t r = 0; r < sample->rounds.size(); ++r) {
      const campaign::Round& round = sample->rounds[r];
      if (model->verdicts_by_round.size() <= r) model->verdicts_by_round.emplace_back();
      ++model->verdicts_by_round[r][round.verdict];
      model->usage += round.usage;
      if (std::isfinite(round.dollars)) model->dollars += round.dollars;
    }
    if (!first.strict) continue;
    ++model->classes[ClassOf(first)];
    for (const campaign::CaseFigures& one : first.cases) {
      if (one.kind != "timed") continue;
      ++timed;
      for (const auto& [mover, bytes] : one.moved)
        model->moved[mover] += static_cast<double>(bytes);
    }
  }
  for (auto& [mover, bytes] : model->moved) bytes /= timed;
  model->finished = static_cast<int>(samples.finished.size());
  model->unfinished = std::max(0, model->planned - model->finished);
  if (model->finished > 0)
    model->unsupported_rate = static_cast<double>(model->unsupported) / model->finished;
  if (model->facts.price_known && model->finished > 0) {
    model->dollars_per_problem = model->dollars / model->finished;
    if (passes > 0) model->dollars_per_pass = model->dollars / passes;
  }
}

Work WorkOn(const campaign::Run& run, const campaign::ModelFacts& facts,
            const Bootstrap& bootstrap) {
  Work work;
  work.profile = run.settings.profile_hash;
  work.samples = SamplesOf(run, facts.name);
  ModelSummary& model = work.summary;
  model.facts = facts;
  model.run = run.settings.name;
  model.planned = static_cast<int>(std::min<std::size_t>(
      std::numeric_limits<int>::max() / 2,
      static_cast<std::size_t>(std::max(0, run.settings.samples)) * run.settings.problems.size()));
  std::vector<const Answered*> all;
  std::map<std::string, std::map<std::string, std::vector<const Answered*>>> by;
  for (const Answered& problem : work.samples.problems) {
    all.push_back(&problem);
    for (const auto& [dimension, values] : DimensionsOf(*problem.facts))
      for (const std::string& value : std::set<std::string>(values.begin(), values.end()))
        by[dimension][value].push_back(&problem);
  }
  model.all = FiguresOf(all, bootstrap);
  for (const auto& [dimension, values] : by)
    for (const auto& [value, problems] : values)
      model.by[dimension][value] = FiguresOf(problems, bootstrap);
  AddRounds(work.samples, run.settings.rounds, bootstrap, &model);
  AddCounts(work.samples, &model);
  model.fast_reference = FastOverReference(work.samples.problems);
  model.score_if_unsupported_fails = ScoreIfUnsupportedFails(work.samples);
  return work;
}

// NAME, NAME (RUN) where several runs have it, NAME (RUN) #2 where these have the same name too.
void Label(std::vector<Work>* works) {
  std::map<std::string, int> names;
  for (const Work& work : *works) ++names[work.summary.facts.name];
  std::set<std::string> taken;
  for (Work& work : *works) {
    ModelSummary& model = work.summary;
    const std::string plain = names[model.facts.name] == 1
                                  ? model.facts.name
                                  : fmt::format("{} ({})", model.facts.name, model.run);
    model.label = plain;
    for (int n = 2; !taken.insert(model.label).second; ++n)
      model.label = fmt::format("{} #{}", plain, n);
  }
}

Pair PairOf(const Work& a, const Work& b, const Bootstrap& bootstrap) {
  Pair pair{a.summary.label, b.summary.label, 0, {}, {}};
  std::map<std::string_view, const Answered*> of_b;
  for (const Answered& problem : b.samples.problems) of_b[problem.facts->slug] = &problem;
  std::vector<std::pair<std::string_view, double>> pass, score;
  for (const Answered& mine : a.samples.problems) {
    const auto other = of_b.find(mine.facts->slug);
    if (other == of_b.end() || other->second->facts->hash != mine.facts->hash) continue;
    ++pair.problems;
    const auto difference = [&](Metric metric) {
      return MeanOf(metric, mine) - MeanOf(metric, *other->second);
    };
    pass.emplace_back(mine.facts->family, difference(Metric::kStrictPass));
    score.emplace_back(mine.facts->family, difference(Metric::kScore));
  }
  pair.strict_pass = DifferenceInterval(ByFamily(pass), bootstrap);
  pair.score = DifferenceInterval(ByFamily(score), bootstrap);
  return pair;
}

std::vector<ProblemSummary> ProblemsOf(const std::vector<campaign::Run>& runs,
                                       const std::vector<Work>& works, const Options& options) {
  std::vector<ProblemSummary> problems;
  std::map<std::string_view, std::size_t> places;
  for (const campaign::Run& run : runs)
    for (const campaign::ProblemFacts& facts : run.settings.problems)
      if (places.emplace(facts.slug, problems.size()).second)
        problems.push_back({facts, std::nullopt, {}});
  const auto in_panel = [&](const ModelSummary& model) {
    return options.panel.empty() ||
           std::any_of(options.panel.begin(), options.panel.end(), [&](const std::string& name) {
             return name == model.facts.name || name == model.label;
           });
  };
  std::vector<std::pair<double, int>> panel(problems.size());  // sum of pass@1, how many
  for (const Work& work : works) {
    for (const Answered& answered : work.samples.problems) {
      const std::size_t place = places.at(answered.facts->slug);
      ProblemSummary::Cell& cell = problems[place].models[work.summary.label];
      cell.strict_pass = MeanOf(Metric::kStrictPass, answered);
      cell.score = MeanOf(Metric::kScore, answered);
      cell.pass_within = MeanOf(Metric::kPassWithin, answered);
      cell.score_within = MeanOf(Metric::kScoreWithin, answered);
      cell.samples = static_cast<int>(answered.samples.size());
      if (!in_panel(work.summary)) continue;
      panel[place].first += cell.strict_pass;
      ++panel[place].second;
    }
  }
  for (std::size_t i = 0; i < problems.size(); ++i)
    if (panel[i].second > 0) problems[i].difficulty = 1 - panel[i].first / panel[i].second;
  return problems;
}

}  // namespace

Result<Summary> Summarise(const std::vector<campaign::Run>& runs, const Options& options) {
  if (runs.empty()) return Fail("no run to report: give at least one run folder");
  Summary summary;
  summary.options = options;
  const Bootstrap bootstrap{options.resamples, options.seed};

  std::vector<Work> works;
  std::map<std::string, std::size_t> profiles;  // hash: its place
  for (std::size_t r = 0; r < runs.size(); ++r) {
    summary.runs.push_back(runs[r].settings);
    profiles.emplace(runs[r].settings.profile_hash, profiles.size());
    if (std::isfinite(runs[r].dollars)) summary.dollars += runs[r].dollars;
    for (const campaign::ModelFacts& facts : runs[r].settings.models) {
      works.push_back(WorkOn(runs[r], facts, bootstrap));
      works.back().summary.run_index = r;
    }
  }
  Label(&works);
  const auto key = [&](const Work& work) {
    const Figures& all = work.summary.all;
    return std::tuple(profiles.at(work.profile), -all.strict_pass.value, -all.score.value,
                      work.summary.label);
  };
  std::sort(works.begin(), works.end(),
            [&](const Work& a, const Work& b) { return key(a) < key(b); });

  for (std::size_t a = 0; a < works.size(); ++a) {
    for (std::size_t b = a + 1; b < works.size(); ++b) {
      if (works[a].profile != works[b].profile) continue;
      summary.pairs.push_back(PairOf(works[a], works[b], bootstrap));
      const Pair& pair = summary.pairs.back();
      // Being right counts first; speed decides where that does not.
      const bool decided = pair.strict_pass.low > 0 || pair.strict_pass.high < 0;
      const Interval& difference = decided ? pair.strict_pass : pair.score;
      if (difference.low > 0) ++works[b].summary.rank_group;
      if (difference.high < 0) ++works[a].summary.rank_group;
    }
  }
  summary.problems = ProblemsOf(runs, works, options);
  double known = 0;
  for (Work& work : works) {
    known += work.summary.dollars;
    summary.models.push_back(std::move(work.summary));
  }
  summary.dollars_elsewhere = std::max(0.0, summary.dollars - known);
  if (summary.dollars_elsewhere < 1e-9) summary.dollars_elsewhere = 0;  // rounding of sums
  summary.times = TimesOf(summary);
  summary.notes = NotesOf(summary);
  return summary;
}

}  // namespace allranks::report
