// The judge's way in: one judgement (trial.h), and its band if that is asked for.
#include "judge/judge.h"

#include "judge/band.h"
#include "judge/trial.h"

namespace allranks::judge {

Judgement Judge(const Tools& tools, const Request& request) {
  Judgement judgement = Trial(tools, request).Run();
  if (request.band > 0) AddBand(tools, request, &judgement);
  return judgement;
}

}  // namespace allranks::judge
