// Where a process stands in the simulated machine room, as launchers tell it.
#pragma once

namespace allranks::shim {

struct Placement {
  int rank = -1;        // in the launcher's counting; -1: no launcher
  int host = -1;        // the simulated host that ALLRANKS_HOST names; -1: none
  bool placed = false;  // the launcher itself has spread its ranks over hosts
};

Placement PlacementByEnvironment();

}  // namespace allranks::shim
