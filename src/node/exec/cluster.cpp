// Clusters; see cluster.h. Which SMs they get is in residency.cpp.
#include "node/exec/cluster.h"

#include <algorithm>
#include <bit>

#include "node/check/checker.h"
#include "node/exec/async_internal.h"

namespace allranks::node {
namespace {

using Next = Simulator::AsyncNext;

// Without a cluster launch every CTA is a cluster of one.
Cluster& ClusterOf(Cta& cta) {
  if (cta.cluster == nullptr) {
    cta.cluster = std::make_shared<Cluster>();
    cta.cluster->index = cta.index;
    cta.cluster->ctas.push_back(&cta);
  }
  return *cta.cluster;
}

Next Wait(Simulator& sim, Path& path, const AsyncOp& a, std::uint32_t lanes) {
  Warp& warp = *path.warp;
  // Lanes whose phase has ended since their arrival need not wait.
  if ((warp.cluster_arrived & lanes) == 0) {
    path.clock = std::max(path.clock, ClusterOf(*warp.cta).ended + sim.costs.cluster);
    if (sim.checker != nullptr) sim.checker->ClusterWaited(path, lanes, a);
    return Next::kGo;
  }
  path.state = Path::State::kBarrier;
  ClusterOf(*warp.cta).waiting.push_back(&path);
  sim.ReleaseJoins(warp);
  return Next::kBlocked;
}

}  // namespace

Cta* FindCta(Cta& cta, std::uint64_t address, std::uint32_t* offset) {
  *offset = static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1));
  const std::uint64_t window = address >> kRankShift;
  if (window == 0) return &cta;
  if (cta.cluster == nullptr) return window == 1 ? &cta : nullptr;
  return window <= cta.cluster->ctas.size() ? cta.cluster->ctas[window - 1] : nullptr;
}

std::uint32_t ClusterSpecial(const Cta& cta, Special what) {
  const LaunchRequest& request = cta.launch->request;
  const Dim3& size = request.cluster;
  const auto count = static_cast<std::uint32_t>(size.Count());
  switch (what) {
    case Special::kClusterCtaRank:
      return cta.rank;
    case Special::kClusterCtas:
      return count;
    case Special::kClusterCtaX:
      return cta.index.x % size.x;
    case Special::kClusterCtaY:
      return cta.index.y % size.y;
    case Special::kClusterCtaZ:
      return cta.index.z % size.z;
    case Special::kClusterCtasX:
      return size.x;
    case Special::kClusterCtasY:
      return size.y;
    case Special::kClusterCtasZ:
      return size.z;
    case Special::kClusterX:
      return cta.index.x / size.x;
    case Special::kClusterY:
      return cta.index.y / size.y;
    case Special::kClusterZ:
      return cta.index.z / size.z;
    case Special::kClustersX:
      return request.grid.x / size.x;
    case Special::kClustersY:
      return request.grid.y / size.y;
    case Special::kClustersZ:
      return request.grid.z / size.z;
    case Special::kIsExplicitCluster:
      return count > 1 ? 1 : 0;
    default:
      return 0;
  }
}

void LeaveCluster(Simulator& sim, Cta& cta) {
  if (cta.cluster == nullptr) return;
  const std::shared_ptr<Cluster> cluster = cta.cluster;
  if (cta.rank < cluster->ctas.size()) cluster->ctas[cta.rank] = nullptr;
  // Who waits for its bytes looks again, and faults.
  if (cluster->ctas.size() > 1) sim.waiting.WakeAll(cta.shared_object);
  CheckClusterBarrier(sim, *cluster);
}

void CheckClusterBarrier(Simulator& sim, Cluster& cluster) {
  bool any = false;
  for (const Cta* cta : cluster.ctas) {
    if (cta == nullptr) continue;
    for (const Warp& warp : cta->warps) {
      if ((warp.live & ~warp.cluster_arrived) != 0) return;
      any |= (warp.live & warp.cluster_arrived) != 0;
    }
  }
  if (!any) return;
  for (Cta* cta : cluster.ctas) {
    if (cta == nullptr) continue;
    for (Warp& warp : cta->warps) warp.cluster_arrived = 0;
  }
  cluster.ended = cluster.latest;
  if (sim.checker != nullptr) sim.checker->ClusterEnds(cluster);
  sim.last_change = std::max(sim.last_change, cluster.latest);
  sim.timer_wakes = 0;
  for (Path* path : std::exchange(cluster.waiting, {})) {
    path->clock = std::max(path->clock, cluster.latest + sim.costs.cluster);
    if (sim.checker != nullptr) {
      const Code& code = *path->warp->cta->launch->code;
      sim.checker->ClusterWaited(*path, path->mask, code.async[code.ops[path->pc].aux]);
    }
    ++path->pc;
    sim.QueuePath(*path, path->clock);
  }
}

Next ExecuteCluster(Simulator& sim, Path& path, const Op& op, const AsyncOp& a,
                    std::uint32_t lanes) {
  Warp& warp = *path.warp;
  Cta& cta = *warp.cta;
  switch (a.kind) {
    case AsyncOpKind::kClusterArrive: {
      Cluster& cluster = ClusterOf(cta);
      if ((warp.cluster_arrived & lanes) != 0) {
        FaultWith(sim, path, "arrives twice in one phase",
                  std::countr_zero(warp.cluster_arrived & lanes));
        return Next::kGone;
      }
      warp.cluster_arrived |= lanes;
      if (sim.checker != nullptr) sim.checker->ClusterArrives(path, lanes, a);
      cluster.latest = std::max(cluster.latest, path.clock);
      CheckClusterBarrier(sim, cluster);
      return Next::kGo;
    }
    case AsyncOpKind::kClusterWait:
      return Wait(sim, path, a, lanes);
    default:
      break;
  }
  const int bytes = a.wide ? 8 : 4;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    std::uint64_t address = LaneValue(path, a.value, l, bytes);
    const std::uint64_t base = a.generic ? kSharedWindow : 0;
    address -= base;
    std::uint32_t offset = 0;
    const Cta* target = address < kWindowSize ? FindCta(cta, address, &offset) : nullptr;
    if (a.kind == AsyncOpKind::kCtaRank) {
      if (target == nullptr) {
        FaultWith(sim, path, "of an address that is in no block of the cluster", l);
        return Next::kGone;
      }
      SetLaneValue(path, op.d, l, target->rank, 4);
      continue;
    }
    const std::uint64_t rank = LaneValue(path, a.count, l, 4);
    if (address >= kWindowSize) {
      FaultWith(sim, path, "not of a shared address", l);
      return Next::kGone;
    }
    // It computes an address and nothing else: compilers move it out of conditions. A block that
    // does not exist is an error of the access that uses the address.
    std::uint64_t mapped = base + offset;
    if (rank != cta.rank) mapped += (std::min(rank, kMostRank) + 1) << kRankShift;
    SetLaneValue(path, op.d, l, mapped, bytes);
  }
  return Next::kGo;
}

}  // namespace allranks::node
