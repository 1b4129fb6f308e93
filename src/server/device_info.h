// What a program can ask about the devices of a profile, and where devices and NICs are attached in
// their host. `wire::Init` sends it to programs, and `allranks smi` prints it: both have one
// source.
#pragma once

#include <cstdint>
#include <vector>

#include "node/hardware/profile.h"
#include "wire/device_messages.h"

namespace allranks::server {

// Parallel NVLinks of a device to one other end, which a profile has as one link.
struct NvLinksOfDevice {
  int link = 0;  // index into Topology::links
  bool beyond_host = false;
  wire::NvLinks links;
};
// In the order of the profile's links. `device` is a machine-wide number here and below.
std::vector<NvLinksOfDevice> NvLinksOf(const node::Profile& profile, int device);

// The PCIe switches and the CPU of a device or a NIC, by its vertex.
wire::PciePlace PlaceOf(const node::Topology& topology, int vertex);

wire::DeviceInfo DescribeDevice(const node::Profile& profile, int device);

}  // namespace allranks::server
