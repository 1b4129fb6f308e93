// Planned faults: links that slow down or die, ranks that die. See faults.h.
#include "node/exec/wait.h"
#include "node/machine/machine_impl.h"

namespace allranks::node {

Result<void> MachineImpl::PlanFaults() {
  for (const PlannedFault& fault : options_.faults) {
    if (fault.rank >= 0) {
      At(fault.at, [this, rank = fault.rank] {
        if (rank_killer_) rank_killer_(rank, sim_.now);
      });
      continue;
    }
    const std::vector<int> links = LinksNamed(profile().topology, fault.name);
    if (links.empty()) {
      return Fail(
          "profile {} has no link or vertex named {}; `allranks profile show {}` lists them",
          profile().name, fault.name, profile().name);
    }
    if (fault.at == 0) {
      BreakLinks(links, fault.rate);
    } else {
      At(fault.at, [this, links, rate = fault.rate] { BreakLinks(links, rate); });
    }
  }
  return {};
}

void MachineImpl::BreakLinks(const std::vector<int>& links, double rate) {
  for (const int link : links) sim_.fabric.SetRate(link, rate);
  if (rate > 0) return;
  sim_.timing.faulty_links = true;
  sim_.last_change = sim_.now;
  // Those who poll over a dead link find out with their next load.
  for (Device& device : sim_.devices) {
    for (const struct Launch& launch : device.launches) {
      for (const Cta* cta : launch.ctas) {
        for (const Warp& warp : cta->warps) {
          for (Path* path : warp.paths) {
            if (path->parked != nullptr) sim_.waiting.Disturb(*path);
          }
        }
      }
    }
  }
}

}  // namespace allranks::node
