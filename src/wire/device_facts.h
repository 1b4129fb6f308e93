// What follows from DeviceInfo, and the versions that the libraries report: one source for CUDA and
// NVML (shim/cuda, shim/nvml) and for what `allranks smi` prints.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "wire/device_messages.h"

namespace allranks::wire {

inline constexpr char kDriverVersion[] = "580.00 (allranks)";
inline constexpr char kNvmlVersion[] = "13.580.00";
inline constexpr int kCudaVersion = 13000;  // 1000 * major + 10 * minor

// "GPU-" and the digits in groups.
inline std::string UuidText(const DeviceInfo& device) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < device.uuid.size(); ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", device.uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

// `legacy`: a domain of four digits instead of eight.
inline std::string BusIdText(int domain, int bus, bool legacy = false) {
  char text[32];
  std::snprintf(text, sizeof text, legacy ? "%04X:%02X:00.0" : "%08X:%02X:00.0",
                static_cast<unsigned>(domain), static_cast<unsigned>(bus));
  return text;
}

// The nearest part of a host that joins two places. A profile has no host bridges: two ports of a
// CPU count as two bridges (kNode, not nvidia-smi's PHB), as on servers of today.
enum class Ancestor { kSwitch, kSwitches, kNode, kSystem };
inline Ancestor AncestorOf(const PciePlace& a, const PciePlace& b) {
  if (a.pcie_switch >= 0 && a.pcie_switch == b.pcie_switch) return Ancestor::kSwitch;
  if (a.pcie_root >= 0 && a.pcie_root == b.pcie_root) return Ancestor::kSwitches;
  return a.cpu == b.cpu ? Ancestor::kNode : Ancestor::kSystem;
}

// How many NVLinks join two devices of a host, directly or through a switch that both are at.
inline std::uint32_t NvLinksBetween(const std::vector<DeviceInfo>& devices, std::size_t a,
                                    std::size_t b) {
  std::uint32_t links = 0;
  for (const NvLinks& of_a : devices[a].nvlinks) {
    if (of_a.peer >= 0 && static_cast<std::size_t>(of_a.peer) == b) links += of_a.links;
    if (of_a.peer >= 0) continue;
    for (const NvLinks& of_b : devices[b].nvlinks)
      if (of_b.peer == of_a.peer) links += std::min(of_a.links, of_b.links);
  }
  return links;
}

inline std::uint32_t NvLinkCount(const DeviceInfo& device) {
  std::uint32_t count = 0;
  for (const NvLinks& links : device.nvlinks) count += links.links;
  return count;
}

}  // namespace allranks::wire
