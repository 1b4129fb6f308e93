// Names of special registers.
#include "node/code/special.h"

#include <unordered_map>

namespace allranks::node {

std::optional<Special> SpecialFromName(std::string_view name) {
  static const std::unordered_map<std::string_view, Special> kNames = {
      {"%tid.x", Special::kTidX},
      {"%tid.y", Special::kTidY},
      {"%tid.z", Special::kTidZ},
      {"%ntid.x", Special::kNtidX},
      {"%ntid.y", Special::kNtidY},
      {"%ntid.z", Special::kNtidZ},
      {"%ctaid.x", Special::kCtaidX},
      {"%ctaid.y", Special::kCtaidY},
      {"%ctaid.z", Special::kCtaidZ},
      {"%nctaid.x", Special::kNctaidX},
      {"%nctaid.y", Special::kNctaidY},
      {"%nctaid.z", Special::kNctaidZ},
      {"%laneid", Special::kLaneid},
      {"%warpid", Special::kWarpid},
      {"%nwarpid", Special::kNwarpid},
      {"%smid", Special::kSmid},
      {"%nsmid", Special::kNsmid},
      {"%gridid", Special::kGridid},
      {"%lanemask_eq", Special::kLanemaskEq},
      {"%lanemask_lt", Special::kLanemaskLt},
      {"%lanemask_le", Special::kLanemaskLe},
      {"%lanemask_gt", Special::kLanemaskGt},
      {"%lanemask_ge", Special::kLanemaskGe},
      {"%clock", Special::kClock},
      {"%clock_hi", Special::kClockHi},
      {"%clock64", Special::kClock64},
      {"%globaltimer", Special::kGlobaltimer},
      {"%globaltimer_lo", Special::kGlobaltimerLo},
      {"%globaltimer_hi", Special::kGlobaltimerHi},
      {"%envreg1", Special::kEnvreg1},
      {"%envreg2", Special::kEnvreg2},
      {"%dynamic_smem_size", Special::kDynamicSmem},
      {"%total_smem_size", Special::kTotalSmem},
      {"%cluster_ctarank", Special::kClusterCtaRank},
      {"%cluster_nctarank", Special::kClusterCtas},
      {"%cluster_ctaid.x", Special::kClusterCtaX},
      {"%cluster_ctaid.y", Special::kClusterCtaY},
      {"%cluster_ctaid.z", Special::kClusterCtaZ},
      {"%cluster_nctaid.x", Special::kClusterCtasX},
      {"%cluster_nctaid.y", Special::kClusterCtasY},
      {"%cluster_nctaid.z", Special::kClusterCtasZ},
      {"%clusterid.x", Special::kClusterX},
      {"%clusterid.y", Special::kClusterY},
      {"%clusterid.z", Special::kClusterZ},
      {"%nclusterid.x", Special::kClustersX},
      {"%nclusterid.y", Special::kClustersY},
      {"%nclusterid.z", Special::kClustersZ},
      {"%is_explicit_cluster", Special::kIsExplicitCluster}};
  const auto it = kNames.find(name);
  return it == kNames.end() ? std::nullopt : std::optional(it->second);
}

std::optional<std::uint32_t> LaunchWide(Special special, const Dim3& grid, const Dim3& block) {
  switch (special) {
    case Special::kNtidX:
      return block.x;
    case Special::kNtidY:
      return block.y;
    case Special::kNtidZ:
      return block.z;
    case Special::kNctaidX:
      return grid.x;
    case Special::kNctaidY:
      return grid.y;
    case Special::kNctaidZ:
      return grid.z;
    default:
      return std::nullopt;
  }
}

}  // namespace allranks::node
