// The least time that one call can take on a profile: what a score is measured against, and below
// which a time is `impossible`. roofline.cpp has the theory.
#pragma once

#include "base/result.h"
#include "node/hardware/profile.h"
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

// What profile, problem and world give to all calls.
class Roofline {
 public:
  Roofline(const node::Profile& profile, const problem::Problem& problem, int world);

  // What scores are fractions of: nanoseconds of one call from the entry of all ranks at once to
  // the last exit. `floor` is that of the rank with the most to do.
  double Ns(const FloorValues& floor) const;

  // What nothing on the node can be faster than: nanoseconds per call, (last exit - first entry) /
  // calls, of `calls` calls without drain, with any trick. `floor` is the mean over the calls.
  // Never more than Ns, since in a burst one call's start and transfers may hide another's.
  double LeastNs(const FloorValues& floor, int calls) const;

 private:
  double WireNs(const FloorValues& floor) const;
  double MemoryNs(const FloorValues& floor) const;

  double one_way_ = 0;    // payload bytes per ns, if all goes in one direction
  double both_ways_ = 0;  // payload bytes per ns, in and out added up
  double memory_ = 0;     // bytes per ns
  double flops_ = 0;      // per ns, of 16-bit factors
  double hop_ns_ = 0;
  double read_ns_ = 0;      // a trip to the L2, from a kernel
  double fence_ns_ = 0;     // that orders data before a flag
  bool by_stream_ = false;  // copies and stream memory operations may do it all
  bool host_ = false;       // waits are in host memory, which has no L2
  double start_ns_ = 0;     // before a call's first operation begins
  double next_ns_ = 0;      // the same in a burst
  double further_ns_ = 0;   // that Ns adds to the start
  double bucket_ns_ = 0;    // the slice of time by which the node hands out capacity
};

inline double RooflineNs(const node::Profile& profile, const problem::Problem& problem, int world,
                         const FloorValues& floor) {
  return Roofline(profile, problem, world).Ns(floor);
}
inline double LeastNs(const node::Profile& profile, const problem::Problem& problem, int world,
                      const FloorValues& floor, int calls) {
  return Roofline(profile, problem, world).LeastNs(floor, calls);
}

}  // namespace allranks::judge
