// The band of a candidate: its speed-up over the reference on perturbed profiles (perturb.h). What
// is better within the whole band is better beyond the doubts about our time model.
#pragma once

#include "judge/judge.h"

namespace allranks::judge {

// Sets judgement->band and adds its cost, if the candidate passed. Timed cases only, one seed,
// undisturbed. Times of the reference are kept in the cache: they are the same for all candidates
// with the same seed. A fault of ours leaves the band out and says so in the log.
void AddBand(const Tools& tools, const Request& request, Judgement* judgement);

}  // namespace allranks::judge
