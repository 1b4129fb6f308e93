// A problem on a machine: what a profile adds to problem.toml, and takes from it.
#pragma once

#include <string>

#include "base/result.h"
#include "node/hardware/profile.h"
#include "problem/problem.h"

namespace allranks::problem {

// The problem as it is there. Of the kinds of links that it grants those remain that the machine
// has between devices, or between a device and its host; if it has none of them, all that it has
// are granted. Multicast remains where there is multicast. Fails if a case needs more devices.
Result<Problem> On(Problem problem, const node::Profile& profile);

// "sm_90", or "sm_90a" where the problem asks for instructions of one architecture alone.
std::string ArchOf(const Problem& problem, const node::Profile& profile);

}  // namespace allranks::problem
