// Memory by handles: physical memory, its mapping for some devices, and a multicast object over the
// memory of several.
#pragma once

#include <cstring>
#include <vector>

#include "driver.h"

constexpr size_t kGranule = size_t{2} << 20;

inline CUmemAllocationProp MemoryOf(int device, int handle_types = 0) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
  return properties;
}

inline CUmemGenericAllocationHandle CreateOn(int device, size_t size, int handle_types = 0) {
  const CUmemAllocationProp properties = MemoryOf(device, handle_types);
  CUmemGenericAllocationHandle handle = 0;
  DRIVER_CHECK(DRIVER(cuMemCreate)(&handle, size, &properties, 0));
  return handle;
}

inline CUdeviceptr Reserve(size_t size) {
  CUdeviceptr address = 0;
  DRIVER_CHECK(DRIVER(cuMemAddressReserve)(&address, size, 0, 0, 0));
  return address;
}

inline CUmemAccessDesc RightOf(int device,
                               CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
}

// Lets the devices first..last read and write a mapped range.
inline void Allow(CUdeviceptr address, size_t size, int first, int last) {
  std::vector<CUmemAccessDesc> rights;
  for (int d = first; d <= last; ++d) rights.push_back(RightOf(d));
  DRIVER_CHECK(DRIVER(cuMemSetAccess)(address, size, rights.data(), rights.size()));
}

// New addresses of all of `handle`, for the devices first..last.
template <class T = void>
T* MapFor(CUmemGenericAllocationHandle handle, size_t size, int first, int last) {
  const CUdeviceptr address = Reserve(size);
  DRIVER_CHECK(DRIVER(cuMemMap)(address, size, 0, handle, 0));
  Allow(address, size, first, last);
  return reinterpret_cast<T*>(address);
}

template <class T>
void UnmapAndFree(T* pointer, size_t size) {
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  DRIVER_CHECK(DRIVER(cuMemUnmap)(address, size));
  DRIVER_CHECK(DRIVER(cuMemAddressFree)(address, size));
}

inline CUmemGenericAllocationHandle CreateMulticast(int devices, size_t size,
                                                    int handle_types = 0) {
  CUmulticastObjectProp properties = {};
  properties.numDevices = devices;
  properties.size = size;
  properties.handleTypes = handle_types;
  CUmemGenericAllocationHandle handle = 0;
  DRIVER_CHECK(DRIVER(cuMulticastCreate)(&handle, &properties));
  return handle;
}

// One buffer on each of the devices 0..n-1 of this process, and the address of all of them.
// T: what it holds; `bytes` is rounded up.
template <class T>
struct MulticastBuffer {
  std::vector<T*> on;       // by device; every device may use all of them
  T* everywhere = nullptr;  // for multimem instructions
  size_t bytes = 0;
  CUmemGenericAllocationHandle multicast = 0;
  std::vector<CUmemGenericAllocationHandle> memory;

  MulticastBuffer(int devices, size_t wanted)
      : bytes((wanted + kGranule - 1) / kGranule * kGranule) {
    multicast = CreateMulticast(devices, bytes);
    for (int d = 0; d < devices; ++d) DRIVER_CHECK(DRIVER(cuMulticastAddDevice)(multicast, d));
    for (int d = 0; d < devices; ++d) {
      memory.push_back(CreateOn(d, bytes));
      DRIVER_CHECK(DRIVER(cuMulticastBindMem)(multicast, 0, memory[d], 0, bytes, 0));
      on.push_back(MapFor<T>(memory[d], bytes, 0, devices - 1));
      CUDA_CHECK(cudaSetDevice(d));
      CUDA_CHECK(cudaMemset(on[d], 0, bytes));
      CUDA_CHECK(cudaDeviceSynchronize());
    }
    everywhere = MapFor<T>(multicast, bytes, 0, devices - 1);
  }
  MulticastBuffer(const MulticastBuffer&) = delete;
  MulticastBuffer& operator=(const MulticastBuffer&) = delete;

  // Not in a destructor: it waits for the devices.
  void Free() {
    UnmapAndFree(everywhere, bytes);
    for (size_t d = 0; d < on.size(); ++d) {
      DRIVER_CHECK(DRIVER(cuMulticastUnbind)(multicast, int(d), 0, bytes));
      UnmapAndFree(on[d], bytes);
      DRIVER_CHECK(DRIVER(cuMemRelease)(memory[d]));
    }
    DRIVER_CHECK(DRIVER(cuMemRelease)(multicast));
  }
};
