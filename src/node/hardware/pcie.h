// Where devices and NICs are attached in their host, by PCIe.
#pragma once

#include <string>

#include "node/hardware/profile.h"

namespace allranks::node {

// Vertices of a topology, or -1.
struct PcieParents {
  int nearest = -1;  // switch
  int root = -1;     // the switch at the CPU; mostly the same
  int cpu = -1;
};
PcieParents PcieParentsOf(const Topology& topology, int vertex);

// On its host. The domain is 0.
int PciBusOf(const Profile& profile, int device);

// The devices of the first host and what is between them and their CPUs, in the form of NCCL's
// topology files (NCCL_TOPO_FILE). NCCL would otherwise describe the machine that it really runs
// on, and choose by its CPU. It asks NVML for NVLinks.
std::string NcclTopology(const Profile& profile);

}  // namespace allranks::node
