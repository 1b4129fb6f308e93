// Profiles like a given one, with times within the error of the model. A speed-up that survives all
// of them does not hang on one constant of ours (band.h asks).
#pragma once

#include <string>

#include "base/result.h"

namespace allranks::judge {

// Each constant that decides how long communication takes is multiplied by a factor of its own,
// log-uniform from 1 / kMostFactor to kMostFactor: the held-out error of modelled times is of that
// size (docs/fidelity.md).
inline constexpr double kMostFactor = 1.15;

// The factor of one key ("links.nvlink", "gbs") in perturbed profile `number`. Drawn from a public
// key: the same for every candidate, problem and seed, so that all of them meet the same machines.
double FactorOf(const std::string& section, const std::string& key, int number);

// The profile at `path` (its whole text, with what it extends) as perturbed profile `number`. Its
// name stays, so that what is locked for the profile still bounds the candidate.
Result<std::string> PerturbedProfile(const std::string& path, int number);

}  // namespace allranks::judge
