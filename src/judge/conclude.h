// What findings make of a judgement whose windows have all been run.
#pragma once

#include "judge/judge.h"

namespace allranks::judge {

// Fills in `lenient` and `findings`, and turns verdicts and texts of cases, and of the whole, into
// those of what was found in them. What a window ended by (a deadlock, a fault) says more than that
// and stays. Wrong outputs say less: a race explains them. `perturbed`: a case that failed under
// another schedule than 0 only; null: none.
void Conclude(const CaseResult* perturbed, Judgement* judgement);

}  // namespace allranks::judge
