// Clusters: CTAs that are resident together on the SMs of one GPC, see each other's shared memory
// and meet at a barrier of their own.
//
// Shared addresses are 32 bits wide. 0 .. size is the executing CTA's own memory; the CTA of rank r
// of the cluster stands at (r + 1) << 24. Generic addresses are kSharedWindow plus that.
#pragma once

#include <cstdint>

#include "node/exec/simulator.h"

namespace allranks::node {

inline constexpr int kRankShift = 24;
inline constexpr std::uint64_t kMostRank = 254;  // that has a place in the window

// The CTA that has a shared address as `cta` sees it, and the offset there; nullptr if the cluster
// has no such CTA or it is over.
Cta* FindCta(Cta& cta, std::uint64_t address, std::uint32_t* offset);

// %cluster_ctarank and its kin.
std::uint32_t ClusterSpecial(const Cta& cta, Special what);

// mapa, getctarank, barrier.cluster for `lanes` of a path.
Simulator::AsyncNext ExecuteCluster(Simulator& sim, Path& path, const Op& op, const AsyncOp& a,
                                    std::uint32_t lanes);

// The CTA is over: its shared memory is nobody's any more.
void LeaveCluster(Simulator& sim, Cta& cta);

// Lets the barrier's phase end if all threads of the cluster that have not exited have arrived.
void CheckClusterBarrier(Simulator& sim, Cluster& cluster);

}  // namespace allranks::node
