// libnvidia-ml.so.1: what management tools and NCCL ask about devices, answered from the profile.
// Initialisation is counted, as in the real library. links.cpp has what joins devices.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "shim/nvml/device.h"

using namespace allranks::nvml;
namespace wire = allranks::wire;

namespace {

std::uint64_t FreeBytes(const Device& device) {
  return ar_free_bytes(static_cast<int>(NumberOf(device)));
}

nvmlReturn_t Text(const std::string& text, char* out, unsigned length) {
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (length <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

// This process: the node tells a process of no other. Info is one of the versions of the struct.
template <class Info>
nvmlReturn_t ComputeProcesses(nvmlDevice_t handle, unsigned* count, Info* processes) {
  ALLRANKS_NVML_FIND(handle, device, count != nullptr);
  const unsigned room = *count;
  *count = 1;
  if (room < 1 || processes == nullptr) return NVML_ERROR_INSUFFICIENT_SIZE;
  processes[0] = {};
  processes[0].pid = static_cast<unsigned>(getpid());
  processes[0].usedGpuMemory = device->memory_bytes - FreeBytes(*device);
  if constexpr (requires { processes->gpuInstanceId; })
    processes[0].gpuInstanceId = processes[0].computeInstanceId = ~0u;  // none
  return NVML_SUCCESS;
}

// Nothing draws.
nvmlReturn_t NoProcesses(nvmlDevice_t handle, unsigned* count) {
  ALLRANKS_NVML_FIND(handle, device, count != nullptr);
  *count = 0;
  return NVML_SUCCESS;
}

// For what a simulated device does not have and what the node does not measure.
nvmlReturn_t NotSupported(nvmlDevice_t handle, bool valid = true) {
  ALLRANKS_NVML_FIND(handle, device, valid);
  return NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace

void allranks::nvml::Fill(int domain, int bus, nvmlPciInfo_t* pci) {
  *pci = {};
  snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%s",
           wire::BusIdText(domain, bus, true).c_str());
  snprintf(pci->busId, sizeof pci->busId, "%s", wire::BusIdText(domain, bus).c_str());
  pci->domain = static_cast<unsigned>(domain);
  pci->bus = static_cast<unsigned>(bus);
  pci->pciDeviceId = 0x10de;
}

// The old layout. Callers with the new one find the name of the bus behind it, too: it fits into
// what is reserved here.
void allranks::nvml::Fill(int domain, int bus, nvmlPciInfoLegacy_t* pci) {
  *pci = {};
  snprintf(pci->busId, sizeof pci->busId, "%s", wire::BusIdText(domain, bus, true).c_str());
  pci->domain = static_cast<unsigned>(domain);
  pci->bus = static_cast<unsigned>(bus);
  pci->pciDeviceId = 0x10de;
  static_assert(sizeof pci->reserved == sizeof pci->busId);
  memcpy(pci->reserved, pci->busId, sizeof pci->reserved);
}

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
  return Text(wire::kDriverVersion, version, length);
}
ALLRANKS_NVML nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return Text(wire::kNvmlVersion, version, length);
}
ALLRANKS_NVML nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *version = wire::kCudaVersion;
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
    if (wire::UuidText(Devices()[i]) != uuid) continue;
    *device = HandleOf(i);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned* index) {
  ALLRANKS_NVML_FIND(handle, device, index != nullptr);
  *index = static_cast<unsigned>(NumberOf(*device));
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
  return Text(wire::UuidText(*device), uuid, length);
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
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t handle, int type, unsigned* mhz) {
  ALLRANKS_NVML_FIND(handle, device, mhz != nullptr);
  switch (type) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM:
      *mhz = device->clock_khz / 1000;
      return NVML_SUCCESS;
    case NVML_CLOCK_MEM:
      *mhz = device->memory_clock_khz / 1000;
      return NVML_SUCCESS;
    default:
      return type == NVML_CLOCK_VIDEO ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
  }
}
// A profile's clocks do not vary.
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t handle, int type, unsigned* mhz) {
  return nvmlDeviceGetClockInfo(handle, type, mhz);
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle,
                                                                   unsigned* count,
                                                                   nvmlProcessInfo_t* processes) {
  return ComputeProcesses(handle, count, processes);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t handle,
                                                                   unsigned* count,
                                                                   nvmlProcessInfo_t* processes) {
  return ComputeProcesses(handle, count, processes);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t handle,
                                                                unsigned* count,
                                                                nvmlProcessInfo_v1_t* processes) {
  return ComputeProcesses(handle, count, processes);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle,
                                                                    unsigned* count,
                                                                    nvmlProcessInfo_t*) {
  return NoProcesses(handle, count);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t handle,
                                                                    unsigned* count,
                                                                    nvmlProcessInfo_t*) {
  return NoProcesses(handle, count);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t handle,
                                                                 unsigned* count,
                                                                 nvmlProcessInfo_v1_t*) {
  return NoProcesses(handle, count);
}

ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle,
                                                         nvmlUtilization_t* rates) {
  return NotSupported(handle, rates != nullptr);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, int, unsigned* degrees) {
  return NotSupported(handle, degrees != nullptr);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t handle, unsigned* percent) {
  return NotSupported(handle, percent != nullptr);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned* milliwatts) {
  return NotSupported(handle, milliwatts != nullptr);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t handle,
                                                           unsigned* milliwatts) {
  return NotSupported(handle, milliwatts != nullptr);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t handle,
                                                               unsigned long long* millijoules) {
  return NotSupported(handle, millijoules != nullptr);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t handle, int* state) {
  return NotSupported(handle, state != nullptr);
}

// A profile has CPUs but no cores of them, and programs run on the CPUs of the real machine.
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t handle, unsigned size,
                                                    unsigned long* cores) {
  return NotSupported(handle, size != 0 && cores != nullptr);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t handle, unsigned size,
                                                               unsigned long* cores, unsigned) {
  return NotSupported(handle, size != 0 && cores != nullptr);
}
ALLRANKS_NVML nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t handle, unsigned size,
                                                       unsigned long* nodes, unsigned) {
  return NotSupported(handle, size != 0 && nodes != nullptr);
}
