// What joins devices, for libnvidia-ml.so.1: NVLinks and what they have carried, PCIe, peer access,
// the fabric of several hosts.
#include <string.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "shim/nvml/device.h"

using namespace allranks::nvml;
namespace wire = allranks::wire;

namespace {

// What is at the other end of a link: a device's number, or -1 for a switch. False: no such link.
bool PeerOf(const Device& device, unsigned link, int* peer) {
  unsigned before = 0;
  for (const auto& links : device.nvlinks) {
    if (link < before + links.links) {
      *peer = links.peer;
      return true;
    }
    before += links.links;
  }
  return false;
}

unsigned NvLinkVersion(const Device& device) {
  return device.compute_major >= 10 ? 7 : device.compute_major == 9 ? 6 : 5;
}

// Switches are on a bus behind all devices.
int SwitchBus() { return 0xc0; }

template <class Pci>
nvmlReturn_t RemotePci(nvmlDevice_t handle, unsigned link, Pci* pci) {
  ALLRANKS_NVML_FIND(handle, device, pci != nullptr && link < NVML_NVLINK_MAX_LINKS);
  int peer = 0;
  if (!PeerOf(*device, link, &peer)) return NVML_ERROR_NOT_SUPPORTED;
  if (peer < 0) {
    Fill(0, SwitchBus(), pci);
  } else {
    Fill(Devices()[static_cast<std::size_t>(peer)].pci_domain,
         Devices()[static_cast<std::size_t>(peer)].pci_bus, pci);
  }
  return NVML_SUCCESS;
}

nvmlGpuTopologyLevel_t LevelOf(const Device& a, const Device& b) {
  if (&a == &b) return NVML_TOPOLOGY_INTERNAL;
  switch (wire::AncestorOf(a.place, b.place)) {
    case wire::Ancestor::kSwitch:
      return NVML_TOPOLOGY_SINGLE;
    case wire::Ancestor::kSwitches:
      return NVML_TOPOLOGY_MULTIPLE;
    case wire::Ancestor::kNode:
      return NVML_TOPOLOGY_NODE;
    case wire::Ancestor::kSystem:
      break;
  }
  return NVML_TOPOLOGY_SYSTEM;
}

// The part of one of `links` parallel links, which carry traffic in equal parts.
std::uint64_t PartOf(std::uint64_t bytes, std::uint32_t links, unsigned link) {
  return bytes / links + (link < bytes % links ? 1 : 0);
}

// A counter of one link, or of all of them.
std::uint64_t Carried(const Device& device, const std::vector<wire::LinkBytes>& traffic,
                      std::uint64_t wire::LinkBytes::* counter, unsigned link) {
  std::uint64_t all = 0;
  unsigned before = 0;
  for (std::size_t i = 0; i < device.nvlinks.size() && i < traffic.size(); ++i) {
    const std::uint64_t bytes = traffic[i].*counter;
    const std::uint32_t links = device.nvlinks[i].links;
    if (link >= before && link < before + links) return PartOf(bytes, links, link - before);
    all += bytes;
    before += links;
  }
  return link == NVML_ALL_LINKS ? all : 0;
}

struct Counter {
  unsigned field;
  std::uint64_t wire::LinkBytes::* bytes;
};
constexpr Counter kCounters[] = {
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, &wire::LinkBytes::sent},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, &wire::LinkBytes::received},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX, &wire::LinkBytes::sent_raw},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, &wire::LinkBytes::received_raw},
};

// Values of the profile, which are unsigned. False: not one of these.
bool FieldOfProfile(const Device& device, nvmlFieldValue_t* value) {
  int peer = 0;
  const bool linked = PeerOf(device, value->scopeId, &peer);
  value->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
  switch (value->fieldId) {
    case NVML_FI_DEV_NVLINK_LINK_COUNT:
      value->value.uiVal = wire::NvLinkCount(device);
      return true;
    case NVML_FI_DEV_NVLINK_GET_STATE:
      value->value.uiVal = linked ? 1 : 0;
      return true;
    case NVML_FI_DEV_NVLINK_GET_SPEED:  // in MB/s
      value->value.uiVal = !linked ? 0 : device.compute_major >= 10 ? 50000 : 25000;
      return true;
    case NVML_FI_DEV_NVLINK_GET_VERSION:
      value->value.uiVal = NvLinkVersion(device);
      return true;
    default:
      return false;
  }
}

// What links have carried, in KiB. False: not one of these, or the link does not exist.
bool FieldOfTraffic(const Device& device, std::optional<std::vector<wire::LinkBytes>>* traffic,
                    nvmlFieldValue_t* value) {
  int peer = 0;
  const bool there = value->scopeId == NVML_ALL_LINKS ? !device.nvlinks.empty()
                                                      : PeerOf(device, value->scopeId, &peer);
  for (const Counter& counter : kCounters) {
    if (!there || value->fieldId != counter.field) continue;
    if (!*traffic) ar_link_traffic(static_cast<int>(NumberOf(device)), &traffic->emplace());
    value->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    value->value.ullVal = Carried(device, **traffic, counter.bytes, value->scopeId) / 1024;
    return true;
  }
  return false;
}

}  // namespace

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t handle, unsigned link,
                                                    unsigned* active) {
  ALLRANKS_NVML_FIND(handle, device, active != nullptr && link < NVML_NVLINK_MAX_LINKS);
  if (device->nvlinks.empty()) return NVML_ERROR_NOT_SUPPORTED;
  int peer = 0;
  *active = PeerOf(*device, link, &peer) ? 1 : 0;
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t handle, unsigned link,
                                                      unsigned* version) {
  ALLRANKS_NVML_FIND(handle, device, version != nullptr && link < NVML_NVLINK_MAX_LINKS);
  if (device->nvlinks.empty()) return NVML_ERROR_NOT_SUPPORTED;
  *version = NvLinkVersion(*device);
  return NVML_SUCCESS;
}
// All capabilities there are: peer access, access to the host's memory, atomics of both, SLI,
// valid.
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t handle, unsigned link,
                                                         int capability, unsigned* result) {
  ALLRANKS_NVML_FIND(handle, device, result != nullptr && link < NVML_NVLINK_MAX_LINKS);
  if (device->nvlinks.empty()) return NVML_ERROR_NOT_SUPPORTED;
  int peer = 0;
  const bool there = PeerOf(*device, link, &peer);
  *result = there && (capability == 0 || capability == 2 || capability == 5) ? 1 : 0;
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t handle, unsigned link,
                                                               nvmlPciInfo_t* pci) {
  return RemotePci(handle, link, pci);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t handle, unsigned link,
                                                            nvmlPciInfoLegacy_t* pci) {
  return RemotePci(handle, link, pci);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t handle, unsigned link,
                                                               int* type) {
  ALLRANKS_NVML_FIND(handle, device, type != nullptr && link < NVML_NVLINK_MAX_LINKS);
  int peer = 0;
  if (!PeerOf(*device, link, &peer)) return NVML_ERROR_NOT_SUPPORTED;
  *type = peer < 0 ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
  return NVML_SUCCESS;
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t first, nvmlDevice_t second, int what,
                                                  int* status) {
  ALLRANKS_NVML_FIND(first, a, status != nullptr);
  ALLRANKS_NVML_FIND(second, b, true);
  const bool good = what != NVML_P2P_CAPS_INDEX_NVLINK ||
                    wire::NvLinksBetween(Devices(), NumberOf(*a), NumberOf(*b)) > 0;
  *status = good ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t first,
                                                               nvmlDevice_t second,
                                                               nvmlGpuTopologyLevel_t* level) {
  ALLRANKS_NVML_FIND(first, a, level != nullptr);
  ALLRANKS_NVML_FIND(second, b, true);
  *level = LevelOf(*a, *b);
  return NVML_SUCCESS;
}

// With a count of 0 only the number of devices is asked for.
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t handle,
                                                            nvmlGpuTopologyLevel_t level,
                                                            unsigned* count,
                                                            nvmlDevice_t* devices) {
  ALLRANKS_NVML_FIND(handle, device, count != nullptr && (*count == 0 || devices != nullptr));
  const unsigned room = *count;
  unsigned found = 0;
  for (const Device& other : Devices()) {
    if (&other == device || LevelOf(*device, other) != level) continue;
    if (found < room) devices[found] = HandleOf(NumberOf(other));
    ++found;
  }
  *count = room == 0 || found < room ? found : room;
  return NVML_SUCCESS;
}
// A profile's CPUs have no cores.
ALLRANKS_NVML nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned, unsigned* count, nvmlDevice_t*) {
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  return count == nullptr ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count,
                                                    nvmlFieldValue_t* values) {
  ALLRANKS_NVML_FIND(handle, device, count >= 0 && values != nullptr);
  std::optional<std::vector<wire::LinkBytes>> traffic;
  for (int i = 0; i < count; ++i) {
    nvmlFieldValue_t& value = values[i];
    value.timestamp = value.latencyUsec = 0;
    value.value.ullVal = 0;
    const bool known = FieldOfProfile(*device, &value) || FieldOfTraffic(*device, &traffic, &value);
    value.nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
  }
  return NVML_SUCCESS;
}
// Counters of before the fields above, which have replaced them.
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetNvLinkUtilizationCounter(nvmlDevice_t handle, unsigned link,
                                                                 unsigned counter,
                                                                 unsigned long long* received,
                                                                 unsigned long long* sent) {
  ALLRANKS_NVML_FIND(
      handle, device,
      link < NVML_NVLINK_MAX_LINKS && counter < 2 && received != nullptr && sent != nullptr);
  return NVML_ERROR_NOT_SUPPORTED;
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t handle,
                                                      nvmlGpuFabricInfo_t* info) {
  ALLRANKS_NVML_FIND(handle, device, info != nullptr);
  *info = {};
  info->state = device->hosts_share_fabric ? NVML_GPU_FABRIC_STATE_COMPLETED
                                           : NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
  if (device->hosts_share_fabric)
    memcpy(info->clusterUuid, "allranks-fabric", sizeof info->clusterUuid);
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t handle,
                                                       nvmlGpuFabricInfoV_t* info) {
  nvmlGpuFabricInfo_t plain;
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t result = nvmlDeviceGetGpuFabricInfo(handle, &plain);
  if (result != NVML_SUCCESS) return result;
  memcpy(info->clusterUuid, plain.clusterUuid, sizeof info->clusterUuid);
  info->status = plain.status;
  info->cliqueId = plain.cliqueId;
  info->state = plain.state;
  // Of the health nothing is known.
  info->healthMask = 0;
  if (info->version >> 24 == 3) info->healthSummary = 0;
  return NVML_SUCCESS;
}
