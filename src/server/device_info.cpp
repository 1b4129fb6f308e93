#include "server/device_info.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "node/hardware/pcie.h"
#include "node/virtual_memory.h"

namespace allranks::server {

using node::Topology;

namespace {

const Topology::Vertex& VertexOf(const Topology& topology, int vertex) {
  return topology.vertices[static_cast<std::size_t>(vertex)];
}

// The vertex at the other end of a link, or -1: the link is not one of `vertex`.
int OtherEnd(const Topology::Link& link, int vertex) {
  return link.a == vertex ? link.b : link.b == vertex ? link.a : -1;
}

}  // namespace

std::vector<NvLinksOfDevice> NvLinksOf(const node::Profile& profile, int device) {
  const Topology& topology = profile.topology;
  const int devices = static_cast<int>(profile.machine.devices_per_host);
  // One NVLink of either generation, in 10^9 bytes per second and direction.
  const double rate = profile.device.compute_major >= 10 ? 50 : 25;
  std::vector<NvLinksOfDevice> found;
  for (std::size_t l = 0; l < topology.links.size(); ++l) {
    const Topology::Link& link = topology.links[l];
    const int other = OtherEnd(link, device);
    const node::LinkKind& kind = topology.kinds[static_cast<std::size_t>(link.kind)];
    if (other < 0 || !kind.name.starts_with("nvlink")) continue;
    const Topology::Vertex& end = VertexOf(topology, other);
    const auto links = static_cast<std::uint32_t>(std::max(1.0, std::round(kind.gbs / rate)));
    if (end.kind == Topology::Kind::kNvswitch) {
      found.push_back({static_cast<int>(l), end.host < 0, {-1 - other, links}});
    } else if (end.kind == Topology::Kind::kDevice && other / devices == device / devices) {
      found.push_back({static_cast<int>(l), false, {other % devices, links}});
    }
  }
  return found;
}

wire::PciePlace PlaceOf(const Topology& topology, int vertex) {
  const node::PcieParents parents = node::PcieParentsOf(topology, vertex);
  return {parents.nearest, parents.root, parents.cpu};
}

wire::DeviceInfo DescribeDevice(const node::Profile& profile, int device) {
  const int devices = static_cast<int>(profile.machine.devices_per_host);
  wire::DeviceInfo info;
  const auto u32 = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  info.name = profile.device.name;
  const char prefix[] = "allranks-virt";
  std::memcpy(info.uuid.data(), prefix, sizeof prefix - 1);
  info.uuid[14] = static_cast<std::uint8_t>(device / devices);
  info.uuid[15] = static_cast<std::uint8_t>(device % devices);
  info.pci_bus = node::PciBusOf(profile, device);
  info.compute_major = profile.device.compute_major;
  info.compute_minor = profile.device.compute_minor;
  info.memory_bytes = static_cast<std::uint64_t>(profile.device.memory_bytes);
  info.l2_bytes = static_cast<std::uint64_t>(profile.device.l2_bytes);
  info.const_bytes = static_cast<std::uint64_t>(profile.device.total_const_mem);
  info.clock_khz = u32(profile.device.clock_mhz * 1000);
  info.memory_clock_khz = u32(profile.device.memory_clock_mhz * 1000);
  info.memory_bus_bits = u32(profile.device.memory_bus_bits);
  info.sms = u32(profile.device.sms);
  info.copy_engines = u32(profile.copy_engine.count);
  info.max_threads_per_cta = u32(profile.device.max_threads_per_cta);
  info.max_cta_xy = u32(profile.device.max_cta_xy);
  info.max_cta_z = u32(profile.device.max_cta_z);
  info.max_grid_x = u32(profile.device.max_grid_x);
  info.max_grid_yz = u32(profile.device.max_grid_yz);
  info.max_cluster_size = u32(profile.device.max_cluster_size);
  info.sm_threads = u32(profile.sm.max_threads);
  info.sm_ctas = u32(profile.sm.max_ctas);
  info.sm_registers = u32(profile.sm.registers);
  info.max_registers_per_thread = u32(profile.sm.max_registers_per_thread);
  info.sm_shared_bytes = u32(profile.sm.shared_bytes);
  info.cta_shared_bytes = u32(profile.sm.shared_default_bytes);
  info.cta_shared_optin_bytes = u32(profile.sm.shared_per_cta_bytes);
  info.cta_shared_reserved = u32(profile.sm.shared_reserved_per_cta);
  info.multicast = info.fabric = node::HasMulticast(profile);
  info.host_handles = info.ranges = true;
  for (const NvLinksOfDevice& links : NvLinksOf(profile, device)) {
    info.nvlinks.push_back(links.links);
    info.hosts_share_fabric |= links.beyond_host;
  }
  info.place = PlaceOf(profile.topology, device);
  return info;
}

}  // namespace allranks::server
