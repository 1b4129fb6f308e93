// Pairs of models over the problems that both runs asked in the same wording.
#include "report/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "report/notes.h"
#include "report/table.h"

namespace allranks::report {
namespace {

constexpr double kSame = 1e-12;  // means of the same samples in another order

std::vector<std::string> NamesIn(const campaign::Run& run) {
  std::vector<std::string> names;
  for (const campaign::ModelFacts& facts : run.settings.models) names.push_back(facts.name);
  return names;
}

std::string List(const campaign::Run& run) {  // for messages
  return Clean(fmt::format("{} has {}", run.settings.name, fmt::join(NamesIn(run), ", ")));
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<std::vector<std::pair<std::string, std::string>>> Match(
    const campaign::Run& a, const campaign::Run& b, const std::vector<std::string>& models) {
  const std::vector<std::string> of_a = NamesIn(a), of_b = NamesIn(b);
  const std::string there = List(a) + "; " + List(b);
  if (!models.empty()) {
    if (models.size() != 2) return Fail("--models takes two names: a model of A and a model of B");
    if (!Has(of_a, models[0]) || !Has(of_b, models[1]))
      return Fail("no model {} in A or no model {} in B: {}", models[0], models[1], there);
    return {{{models[0], models[1]}}};
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& name : of_a)
    if (Has(of_b, name)) pairs.emplace_back(name, name);
  if (pairs.empty() && of_a.size() == 1 && of_b.size() == 1) pairs.emplace_back(of_a[0], of_b[0]);
  if (pairs.empty())
    return Fail("the runs have no model in common ({}): name one of each with --models A B", there);
  return pairs;
}

void Count(double difference, Compared::Signs* signs) {
  ++(difference > kSame ? signs->better : difference < -kSame ? signs->worse : signs->equal);
}

Compared CompareModels(const campaign::Run& run_a, const campaign::Run& run_b,
                       const std::string& model_a, const std::string& model_b,
                       const Bootstrap& bootstrap) {
  Compared compared;
  compared.model_a = model_a;
  compared.model_b = model_b;
  const ModelSamples a = SamplesOf(run_a, model_a), b = SamplesOf(run_b, model_b);
  std::map<std::string_view, const Answered*> of_b;
  for (const Answered& problem : b.problems) of_b[problem.facts->slug] = &problem;

  std::vector<std::pair<const Answered*, const Answered*>> both;
  for (const Answered& problem : a.problems) {
    const auto other = of_b.find(problem.facts->slug);
    if (other == of_b.end()) {
      ++compared.only_a;
    } else if (other->second->facts->hash != problem.facts->hash) {
      ++compared.reworded;
    } else {
      both.emplace_back(&problem, other->second);
      compared.samples_a += static_cast<int>(problem.samples.size());
      compared.samples_b += static_cast<int>(other->second->samples.size());
    }
  }
  compared.problems = static_cast<int>(both.size());
  compared.only_b = static_cast<int>(b.problems.size()) - compared.problems - compared.reworded;

  std::map<std::string_view, double> passes_by_family;
  for (const Metric metric : kMetrics) {
    Compared::Row row;
    row.metric = metric;
    std::vector<std::pair<std::string_view, double>> differences;
    for (const auto& [mine, other] : both) {
      const double value_a = MeanOf(metric, *mine), value_b = MeanOf(metric, *other);
      row.a += value_a / static_cast<double>(both.size());
      row.b += value_b / static_cast<double>(both.size());
      differences.emplace_back(mine->facts->family, value_b - value_a);
      if (metric != Metric::kStrictPass) continue;
      Count(value_b - value_a, &compared.by_problem);
      passes_by_family[mine->facts->family] += value_b - value_a;
    }
    const Families families = ByFamily(differences);
    compared.families = static_cast<int>(families.size());
    row.difference = DifferenceInterval(families, bootstrap);
    row.p = SignFlipTest(families);
    row.word = row.difference.low > 0                ? "better"
               : row.difference.high < 0             ? "worse"
               : compared.families < kFewestFamilies ? "too few families"
                                                     : "no difference shown";
    compared.metrics.push_back(row);
  }
  for (const auto& [family, difference] : passes_by_family) Count(difference, &compared.by_family);
  for (Compared::Signs* signs : {&compared.by_problem, &compared.by_family})
    signs->p = SignTest(signs->better, signs->worse);

  for (const auto& [mine, other] : both) {
    const Compared::Problem row = {mine->facts->slug,
                                   mine->facts->family,
                                   MeanOf(Metric::kStrictPass, *mine),
                                   MeanOf(Metric::kStrictPass, *other),
                                   MeanOf(Metric::kScore, *mine),
                                   MeanOf(Metric::kScore, *other),
                                   MeanOf(Metric::kPassWithin, *mine),
                                   MeanOf(Metric::kPassWithin, *other)};
    if (std::abs(row.pass_a - row.pass_b) > kSame || std::abs(row.score_a - row.score_b) > kSame ||
        std::abs(row.within_a - row.within_b) > kSame)
      compared.different.push_back(row);
  }
  const auto key = [](const Compared::Problem& row) {
    return std::tuple(-std::abs(row.score_b - row.score_a), -std::abs(row.pass_b - row.pass_a),
                      row.slug);
  };
  std::sort(
      compared.different.begin(), compared.different.end(),
      [&](const Compared::Problem& x, const Compared::Problem& y) { return key(x) < key(y); });
  return compared;
}

}  // namespace

Result<Comparison> Compare(const campaign::Run& a, const campaign::Run& b,
                           const std::vector<std::string>& models, const Bootstrap& bootstrap) {
  const auto pairs = Match(a, b, models);
  if (!pairs) return Fail(pairs.error());
  Comparison comparison;
  comparison.a = a.settings;
  comparison.b = b.settings;
  comparison.bootstrap = bootstrap;
  for (const auto& [model_a, model_b] : *pairs)
    comparison.pairs.push_back(CompareModels(a, b, model_a, model_b, bootstrap));
  comparison.notes = Mixtures(
      {a.settings, b.settings},
      "Scores are fractions of different rooflines: only passes can be compared between them.");
  for (const auto& [side, run] : {std::pair("A", &a), std::pair("B", &b)})
    if (!run->unfinished.empty())
      comparison.notes.push_back(fmt::format("{} samples of {} are unfinished and not counted.",
                                             run->unfinished.size(), side));
  return comparison;
}

}  // namespace allranks::report
