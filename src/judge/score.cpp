// See score.h. All means are geometric: a case twice as quick and one twice as slow cancel out,
// whatever their sizes.
#include "judge/score.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace allranks::judge {
namespace {

bool Timed(const CaseResult& one) {
  return one.what.kind == problem::Case::Kind::kTimed && one.ran && one.verdict == Verdict::kPass &&
         one.call_ns > 0;
}

std::optional<double> Speedup(std::span<const CaseResult> cases, double CaseResult::* other) {
  std::vector<double> ratios;
  for (const CaseResult& one : cases) {
    if (Timed(one) && one.*other > 0) ratios.push_back(one.*other / one.call_ns);
  }
  return GeometricMean(ratios);
}

}  // namespace

double RooflineFraction(double roofline_ns, double call_ns) {
  if (!(roofline_ns > 0) || !(call_ns > 0)) return 0;
  return std::min(1.0, roofline_ns / call_ns);
}

std::optional<double> GeometricMean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) {
    if (!(value > 0)) return 0.0;
    sum += std::log(value);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

SizeClass SizeClassOf(const problem::Problem& problem, const problem::Case& one) {
  std::uint64_t in = 0, out = 0;
  for (const problem::Tensor& tensor : problem.tensors) {
    if (tensor.dir == problem::Tensor::Dir::kSymmetric) continue;
    (tensor.dir == problem::Tensor::Dir::kIn ? in : out) += BytesOf(problem, tensor, one);
  }
  const std::uint64_t bytes = std::max(in, out);
  if (bytes < 64 << 10) return SizeClass::kSmall;
  return bytes < 4 << 20 ? SizeClass::kMedium : SizeClass::kLarge;
}

double Score(const problem::Problem& problem, std::span<const CaseResult> cases) {
  std::map<SizeClass, std::vector<double>> fractions;
  for (const CaseResult& one : cases) {
    if (one.what.kind != problem::Case::Kind::kTimed) continue;
    fractions[SizeClassOf(problem, one.what)].push_back(
        Timed(one) ? RooflineFraction(one.roofline_ns, one.call_ns) : 0);
  }
  std::vector<double> means;
  for (const auto& [size, values] : fractions) means.push_back(GeometricMean(values).value_or(0));
  return GeometricMean(means).value_or(0);
}

std::optional<double> SpeedupOverReference(std::span<const CaseResult> cases) {
  return Speedup(cases, &CaseResult::reference_ns);
}
std::optional<double> SpeedupOverBaseline(std::span<const CaseResult> cases) {
  return Speedup(cases, &CaseResult::baseline_ns);
}
std::optional<double> SpeedupOverNccl(std::span<const CaseResult> cases) {
  return Speedup(cases, &CaseResult::nccl_ns);
}

Comparison Compare(const Judgement& a, const Judgement& b) {
  Comparison comparison;
  std::vector<double> ratios;
  for (const CaseResult& one : a.cases) {
    const auto other = std::find_if(b.cases.begin(), b.cases.end(), [&](const CaseResult& c) {
      return c.what.name == one.what.name && c.what.world == one.what.world &&
             c.what.params == one.what.params;
    });
    if (other == b.cases.end() || !one.ran || !other->ran) continue;
    Comparison::Row row{.name = one.what.name, .a_ns = one.call_ns, .b_ns = other->call_ns};
    if (row.b_ns > 0) row.speedup = row.a_ns / row.b_ns;
    if (Timed(one) && Timed(*other)) ratios.push_back(row.speedup);
    comparison.rows.push_back(std::move(row));
  }
  comparison.speedup = GeometricMean(ratios);
  return comparison;
}

}  // namespace allranks::judge
