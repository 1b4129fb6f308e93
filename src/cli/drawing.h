// A topology as text: the tree of each host, what joins equals (sockets, meshes), and which way
// leads from each device to the others. Equal parts are drawn once, so that 72 devices still fit.
#pragma once

#include <string>
#include <vector>

#include "node/hardware/profile.h"

namespace allranks::cli {

// "gpu[0-7]", "node[0-17].gpu[0-3]", "cpu0, cpu1, nic4" for a list of vertices' names.
std::string RangeText(const std::vector<std::string>& names);

// Vertices and links, each kind of link with its rate and latency.
std::string DrawTopology(const node::Topology& topology);

// The ways between devices, and from devices to CPUs and NICs, by kind, with their latencies and
// rates; as the node finds them.
std::string DrawRoutes(const node::Profile& profile);

}  // namespace allranks::cli
