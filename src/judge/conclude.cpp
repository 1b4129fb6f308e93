#include "judge/conclude.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "node/findings.h"

namespace allranks::judge {
namespace {

using node::Finding;
using problem::Case;

bool Has(const std::vector<Finding>& all, const Finding& finding) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Finding& one) { return node::SamePlaces(one, finding); });
}

// Whether findings say more than what is known already.
bool Explainable(Verdict verdict) {
  return verdict == Verdict::kPass || verdict == Verdict::kWrongResult ||
         verdict == Verdict::kImpossible;
}

}  // namespace

void Conclude(const CaseResult* perturbed, Judgement* judgement) {
  judgement->lenient = judgement->verdict == Verdict::kPass;
  for (const CaseResult& result : judgement->cases)
    Fold(result.findings, result.what.name, &judgement->findings);
  // A model is told of visible cases only: what was seen in others before is new in these.
  std::vector<Finding> told, all;
  for (CaseResult& result : judgement->cases) {
    all.insert(all.end(), result.findings.begin(), result.findings.end());
    const std::optional<Verdict> verdict = VerdictOf(result.findings);
    if (!verdict || !Explainable(result.verdict)) continue;
    std::vector<Finding> fresh;
    for (const Finding& finding : result.findings)
      if (!Has(told, finding)) fresh.push_back(finding);
    const std::string own = std::exchange(result.text, "");
    result.verdict = *verdict;
    result.text =
        fmt::format("{}: {}", result.what.name,
                    VerdictOf(fresh) ? TextOf(fresh) : "the same findings as in earlier cases");
    if (!own.empty()) result.text += "\nThe outputs are also wrong. " + own;
    if (result.what.kind == Case::Kind::kVisible)
      told.insert(told.end(), fresh.begin(), fresh.end());
  }
  if (!Explainable(judgement->verdict)) return;
  if (const std::optional<Verdict> verdict = VerdictOf(all)) {
    const auto first = std::find_if(
        judgement->cases.begin(), judgement->cases.end(),
        [&](const CaseResult& result) { return VerdictOf(result.findings) == verdict; });
    judgement->verdict = *verdict;
    judgement->text = first->text;
  } else if (judgement->lenient && perturbed != nullptr) {
    judgement->verdict = perturbed->verdict;
    judgement->text = perturbed->text;
  }
}

}  // namespace allranks::judge
