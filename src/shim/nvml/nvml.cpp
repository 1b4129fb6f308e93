// libnvidia-ml.so.1: what management tools and NCCL ask about devices, answered from the profile. A
// device handle is its number on the host plus one. Initialisation is counted, as in the real
// library.
#include "shim/nvml/nvml.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/device_messages.h"

// Of libcuda.so.1 (shim/cuda/driver.h).
extern "C" const std::vector<allranks::wire::DeviceInfo>* ar_all_devices();
extern "C" unsigned long long ar_free_bytes(int device);
extern "C" void ar_uuid_text(int device, char text[41]);

namespace {

using Device = allranks::wire::DeviceInfo;

std::atomic<int> g_users{0};

// Those of the host, whatever CUDA_VISIBLE_DEVICES says.
const std::vector<Device>& Devices() { return *ar_all_devices(); }

int NumberOf(const Device& device) { return static_cast<int>(&device - Devices().data()); }
std::uint64_t FreeBytes(const Device& device) { return ar_free_bytes(NumberOf(device)); }
std::string UuidOf(const Device& device) {
  char text[41];
  ar_uuid_text(NumberOf(device), text);
  return text;
}

nvmlDevice_t HandleOf(std::size_t index) { return reinterpret_cast<nvmlDevice_t>(index + 1); }

// The device behind a handle, or why there is none.
nvmlReturn_t Find(nvmlDevice_t handle, const Device** device) {
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  const auto number = reinterpret_cast<std::size_t>(handle);
  if (number == 0 || number > Devices().size()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = &Devices()[number - 1];
  return NVML_SUCCESS;
}

// Evaluates to the error of a call with arguments that are not allowed.
#define ALLRANKS_NVML_FIND(handle, device, ...)           \
  const Device* device = nullptr;                         \
  if (!(__VA_ARGS__)) return NVML_ERROR_INVALID_ARGUMENT; \
  if (const nvmlReturn_t found = Find(handle, &device); found != NVML_SUCCESS) return found

nvmlReturn_t Text(const std::string& text, char* out, unsigned length) {
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (length <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

std::string BusId(int domain, int bus, bool legacy) {
  char text[32];
  snprintf(text, sizeof text, legacy ? "%04X:%02X:00.0" : "%08X:%02X:00.0", domain, bus);
  return text;
}

void Fill(int domain, int bus, nvmlPciInfo_t* pci) {
  *pci = {};
  snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%s", BusId(domain, bus, true).c_str());
  snprintf(pci->busId, sizeof pci->busId, "%s", BusId(domain, bus, false).c_str());
  pci->domain = static_cast<unsigned>(domain);
  pci->bus = static_cast<unsigned>(bus);
  pci->pciDeviceId = 0x10de;
}

// The old layout. Callers with the new one find the name of the bus behind it, too: it fits into
// what is reserved here.
void Fill(int domain, int bus, nvmlPciInfoLegacy_t* pci) {
  *pci = {};
  const std::string name = BusId(domain, bus, true);
  snprintf(pci->busId, sizeof pci->busId, "%s", name.c_str());
  pci->domain = static_cast<unsigned>(domain);
  pci->bus = static_cast<unsigned>(bus);
  pci->pciDeviceId = 0x10de;
  static_assert(sizeof pci->reserved == sizeof pci->busId);
  memcpy(pci->reserved, pci->busId, sizeof pci->reserved);
}

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

bool Linked(const Device& a, std::size_t b) {
  for (const auto& links : a.nvlinks)
    if (links.peer < 0 || static_cast<std::size_t>(links.peer) == b) return true;
  return false;
}

}  // namespace

ALLRANKS_NVML nvmlReturn_t nvmlInitWithFlags(unsigned) {
  if (Devices().empty()) return NVML_ERROR_DRIVER_NOT_LOADED;
  ++g_users;
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlInit_v2() { return nvmlInitWithFlags(0); }
ALLRANKS_NVML nvmlReturn_t nvmlInit() { return nvmlInitWithFlags(0); }
ALLRANKS_NVML nvmlReturn_t nvmlShutdown() {
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  --g_users;
  return NVML_SUCCESS;
}

ALLRANKS_NVML const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "success";
    case NVML_ERROR_UNINITIALIZED:
      return "nvmlInit has not been called";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "invalid argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "not supported by this device";
    case NVML_ERROR_NO_PERMISSION:
      return "no permission";
    case NVML_ERROR_NOT_FOUND:
      return "not found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "the buffer is too small";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "there is no driver";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "no such function";
    case NVML_ERROR_UNKNOWN:
      break;
  }
  return "unknown error";
}

ALLRANKS_NVML nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return Text("580.00 (allranks)", version, length);
}
ALLRANKS_NVML nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return Text("13.580.00", version, length);
}
ALLRANKS_NVML nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *version = 13000;
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}
ALLRANKS_NVML nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t* state) {
  if (state == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *state = {};
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t
nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t* settings) {
  if (settings == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *settings = {settings->version, 0, 0, 0, 0};
  return NVML_SUCCESS;
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(Devices().size());
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || index >= Devices().size()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = HandleOf(index);
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
    domain = 0;
    if (sscanf(id, "%x:%x.%x", &bus, &slot, &function) < 2) return NVML_ERROR_INVALID_ARGUMENT;
  }
  for (std::size_t i = 0; i < Devices().size(); ++i) {
    if (Devices()[i].pci_domain == static_cast<int>(domain) &&
        Devices()[i].pci_bus == static_cast<int>(bus) && slot == 0) {
      *device = HandleOf(i);
      return NVML_SUCCESS;
    }
  }
  return NVML_ERROR_NOT_FOUND;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || uuid == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (std::size_t i = 0; i < Devices().size(); ++i) {
    if (UuidOf(Devices()[i]) != uuid) continue;
    *device = HandleOf(i);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned* index) {
  ALLRANKS_NVML_FIND(handle, device, index != nullptr);
  *index = static_cast<unsigned>(device - Devices().data());
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned* number) {
  return nvmlDeviceGetIndex(handle, number);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char* name, unsigned length) {
  ALLRANKS_NVML_FIND(handle, device, name != nullptr);
  return Text(device->name, name, length);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char* uuid, unsigned length) {
  ALLRANKS_NVML_FIND(handle, device, uuid != nullptr);
  return Text(UuidOf(*device), uuid, length);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t* pci) {
  ALLRANKS_NVML_FIND(handle, device, pci != nullptr);
  Fill(device->pci_domain, device->pci_bus, pci);
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfoLegacy_t* pci) {
  ALLRANKS_NVML_FIND(handle, device, pci != nullptr);
  Fill(device->pci_domain, device->pci_bus, pci);
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t handle, nvmlPciInfoLegacy_t* pci) {
  return nvmlDeviceGetPciInfo_v2(handle, pci);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int* major,
                                                              int* minor) {
  ALLRANKS_NVML_FIND(handle, device, major != nullptr && minor != nullptr);
  *major = device->compute_major;
  *minor = device->compute_minor;
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t* memory) {
  ALLRANKS_NVML_FIND(handle, device, memory != nullptr);
  const unsigned long long unused = FreeBytes(*device);
  *memory = {device->memory_bytes, unused, device->memory_bytes - unused};
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle,
                                                      nvmlMemory_v2_t* memory) {
  nvmlMemory_t plain;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t result = nvmlDeviceGetMemoryInfo(handle, &plain);
  if (result == NVML_SUCCESS) *memory = {memory->version, plain.total, 0, plain.free, plain.used};
  return result;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle,
                                                                   unsigned* count,
                                                                   nvmlProcessInfo_t* processes) {
  ALLRANKS_NVML_FIND(handle, device, count != nullptr);
  // This one: the node tells a process of no other.
  const unsigned room = *count;
  *count = 1;
  if (room < 1 || processes == nullptr) return NVML_ERROR_INSUFFICIENT_SIZE;
  processes[0] = {static_cast<unsigned>(getpid()), device->memory_bytes - FreeBytes(*device), ~0u,
                  ~0u};
  return NVML_SUCCESS;
}

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
  const auto number = static_cast<std::size_t>(b - Devices().data());
  const bool good = what != NVML_P2P_CAPS_INDEX_NVLINK || Linked(*a, number);
  *status = good ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
  return NVML_SUCCESS;
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t first,
                                                               nvmlDevice_t second,
                                                               nvmlGpuTopologyLevel_t* level) {
  ALLRANKS_NVML_FIND(first, a, level != nullptr);
  ALLRANKS_NVML_FIND(second, b, true);
  *level = a == b                                                    ? NVML_TOPOLOGY_INTERNAL
           : a->pcie_switch >= 0 && a->pcie_switch == b->pcie_switch ? NVML_TOPOLOGY_SINGLE
           : a->cpu == b->cpu                                        ? NVML_TOPOLOGY_NODE
                                                                     : NVML_TOPOLOGY_SYSTEM;
  return NVML_SUCCESS;
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count,
                                                    nvmlFieldValue_t* values) {
  ALLRANKS_NVML_FIND(handle, device, count >= 0 && values != nullptr);
  for (int i = 0; i < count; ++i) {
    nvmlFieldValue_t& value = values[i];
    value.timestamp = value.latencyUsec = 0;
    value.value.ullVal = 0;
    value.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    value.nvmlReturn = NVML_SUCCESS;
    int peer = 0;
    const bool linked = PeerOf(*device, value.scopeId, &peer);
    switch (value.fieldId) {
      case NVML_FI_DEV_NVLINK_LINK_COUNT:
        for (const auto& links : device->nvlinks) value.value.uiVal += links.links;
        break;
      case NVML_FI_DEV_NVLINK_GET_STATE:
        value.value.uiVal = linked ? 1 : 0;
        break;
      case NVML_FI_DEV_NVLINK_GET_SPEED:  // in MB/s
        value.value.uiVal = !linked ? 0 : device->compute_major >= 10 ? 50000 : 25000;
        break;
      case NVML_FI_DEV_NVLINK_GET_VERSION:
        value.value.uiVal = NvLinkVersion(*device);
        break;
      default:
        value.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    }
  }
  return NVML_SUCCESS;
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
  info->healthMask = 0;
  return NVML_SUCCESS;
}
