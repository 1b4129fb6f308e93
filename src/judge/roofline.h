// The least time that one call can take on a profile: what a score is measured against, and below
// which a time is `impossible`. roofline.cpp has the theory.
#pragma once

#include "base/result.h"
#include "node/profile.h"
#include "problem/problem.h"

namespace allranks::judge {

// problem::Floor in numbers: the least that one rank must do in one call.
struct FloorValues {
  double ingress = 0, egress = 0;  // payload bytes over links
  double busiest = 0;              // of these, in one direction of the rank with the most
  double hbm = 0;                  // bytes of its own memory
  double flops = 0;                // on tensor cores
  double hops = 0;                 // one-way link latencies, one after the other
};

// What problem.toml says, for a case.
Result<FloorValues> FloorOf(const problem::Problem& problem, const problem::Case& one);

// What scores are fractions of: nanoseconds of one call from the entry of all ranks at once to the
// last exit. `floor` is that of the rank with the most to do.
double RooflineNs(const node::Profile& profile, const problem::Problem& problem, int world,
                  const FloorValues& floor);

// What nothing on the node can be faster than: nanoseconds per call, (last exit - first entry) /
// calls, of `calls` calls without drain, with any trick. `floor` is the mean over the calls. Never
// more than RooflineNs, since in a burst one call's start and transfers may hide another's.
double LeastNs(const node::Profile& profile, const problem::Problem& problem, int world,
               const FloorValues& floor, int calls);

}  // namespace allranks::judge
