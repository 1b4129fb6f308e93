// What stands behind a device handle of libnvidia-ml.so.1: the host's devices, whatever
// CUDA_VISIBLE_DEVICES says. A handle is the device's number on the host plus one.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "shim/nvml/nvml.h"
#include "wire/device_facts.h"

// Of libcuda.so.1 (shim/cuda/driver.h).
extern "C" const std::vector<allranks::wire::DeviceInfo>* ar_all_devices();
extern "C" unsigned long long ar_free_bytes(int device);
extern "C" void ar_link_traffic(int device, std::vector<allranks::wire::LinkBytes>* links);

namespace allranks::nvml {

using Device = wire::DeviceInfo;

// How often the library is initialised more often than shut down.
inline std::atomic<int> g_users{0};

inline const std::vector<Device>& Devices() { return *ar_all_devices(); }
inline std::size_t NumberOf(const Device& device) {
  return static_cast<std::size_t>(&device - Devices().data());
}
inline nvmlDevice_t HandleOf(std::size_t number) {
  return reinterpret_cast<nvmlDevice_t>(number + 1);
}

// The device behind a handle, or why there is none.
inline nvmlReturn_t Find(nvmlDevice_t handle, const Device** device) {
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  const auto number = reinterpret_cast<std::size_t>(handle);
  if (number == 0 || number > Devices().size()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = &Devices()[number - 1];
  return NVML_SUCCESS;
}

void Fill(int domain, int bus, nvmlPciInfo_t* pci);
void Fill(int domain, int bus, nvmlPciInfoLegacy_t* pci);

// Evaluates to the error of a call with arguments that are not allowed.
#define ALLRANKS_NVML_FIND(handle, device, ...)           \
  const Device* device = nullptr;                         \
  if (!(__VA_ARGS__)) return NVML_ERROR_INVALID_ARGUMENT; \
  if (const nvmlReturn_t found = Find(handle, &device); found != NVML_SUCCESS) return found

}  // namespace allranks::nvml
