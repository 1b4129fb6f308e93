// What a program can ask about a device. The node sends the profile's numbers at initialisation;
// what a profile does not say is the fixed answer of a data-centre GPU, and what the node does not
// offer is 0.
#include <stdio.h>
#include <string.h>

#include "shim/cuda/driver.h"

using namespace allranks::shim;
namespace wire = allranks::wire;

namespace {

struct Fixed {
  CUdevice_attribute attribute;
  int value;
};
#define ALLRANKS_FIXED(name, value) {CU_DEVICE_ATTRIBUTE_##name, value}
constexpr Fixed kFixed[] = {
    // Textures and surfaces: table "Technical Specifications per Compute Capability" of the CUDA
    // C++
    // Programming Guide.
    ALLRANKS_FIXED(MAXIMUM_TEXTURE1D_WIDTH, 131072),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 1 << 28),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_WIDTH, 131072),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_HEIGHT, 65536),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2097120),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_GATHER_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE3D_WIDTH, 16384),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE3D_HEIGHT, 16384),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE3D_DEPTH, 16384),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 8192),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 8192),
    ALLRANKS_FIXED(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURECUBEMAP_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046),
    ALLRANKS_FIXED(MAXIMUM_SURFACE1D_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_SURFACE1D_LAYERED_LAYERS, 2048),
    ALLRANKS_FIXED(MAXIMUM_SURFACE2D_WIDTH, 131072),
    ALLRANKS_FIXED(MAXIMUM_SURFACE2D_HEIGHT, 65536),
    ALLRANKS_FIXED(MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32768),
    ALLRANKS_FIXED(MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048),
    ALLRANKS_FIXED(MAXIMUM_SURFACE3D_WIDTH, 16384),
    ALLRANKS_FIXED(MAXIMUM_SURFACE3D_HEIGHT, 16384),
    ALLRANKS_FIXED(MAXIMUM_SURFACE3D_DEPTH, 16384),
    ALLRANKS_FIXED(MAXIMUM_SURFACECUBEMAP_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32768),
    ALLRANKS_FIXED(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 2046),
    ALLRANKS_FIXED(CAN_TEX2D_GATHER, 1),
    // Streams, launches, events.
    ALLRANKS_FIXED(CAN_USE_64_BIT_STREAM_MEM_OPS, 1),
    ALLRANKS_FIXED(CAN_USE_STREAM_WAIT_VALUE_NOR, 1),
    ALLRANKS_FIXED(CAN_USE_STREAM_MEM_OPS_V1, 1),
    ALLRANKS_FIXED(CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1),
    ALLRANKS_FIXED(CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1),
    ALLRANKS_FIXED(CAN_FLUSH_REMOTE_WRITES, 1),
    ALLRANKS_FIXED(MEM_SYNC_DOMAIN_COUNT, 4),
    ALLRANKS_FIXED(TENSOR_MAP_ACCESS_SUPPORTED, 1),
    // Memory.
    ALLRANKS_FIXED(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1),
    ALLRANKS_FIXED(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1),
    ALLRANKS_FIXED(HOST_NUMA_MULTINODE_IPC_SUPPORTED, 0),
    ALLRANKS_FIXED(HOST_ALLOC_DMA_BUF_SUPPORTED, 0),
    ALLRANKS_FIXED(MANAGED_MEMORY, 1),
    ALLRANKS_FIXED(CONCURRENT_MANAGED_ACCESS, 1),
    ALLRANKS_FIXED(HOST_REGISTER_SUPPORTED, 1),
    ALLRANKS_FIXED(READ_ONLY_HOST_REGISTER_SUPPORTED, 1),
    ALLRANKS_FIXED(MEMORY_POOLS_SUPPORTED, 1),
    // Behind PCIe the host's memory has no native atomics, and no page table is shared.
    ALLRANKS_FIXED(HOST_NATIVE_ATOMIC_SUPPORTED, 0),
    ALLRANKS_FIXED(ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED, 0),
    ALLRANKS_FIXED(PAGEABLE_MEMORY_ACCESS, 0),
    ALLRANKS_FIXED(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0),
    ALLRANKS_FIXED(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 0),
    // Hints about the L2 cache are accepted; a cache that could be set aside is not modelled.
    ALLRANKS_FIXED(MAX_PERSISTING_L2_CACHE_SIZE, 0),
    ALLRANKS_FIXED(MAX_ACCESS_POLICY_WINDOW_SIZE, 0),
};
#undef ALLRANKS_FIXED

int Attribute(const wire::DeviceInfo& info, int device, CUdevice_attribute attribute, bool* known) {
  *known = true;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return static_cast<int>(info.max_threads_per_cta);
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return static_cast<int>(info.max_cta_xy);
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return static_cast<int>(info.max_cta_z);
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return static_cast<int>(info.max_grid_x);
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return static_cast<int>(info.max_grid_yz);
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return static_cast<int>(info.cta_shared_bytes);
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return static_cast<int>(info.cta_shared_optin_bytes);
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return static_cast<int>(info.sm_shared_bytes);
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return static_cast<int>(info.cta_shared_reserved);
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return static_cast<int>(info.const_bytes);
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return static_cast<int>(info.sm_registers);
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return static_cast<int>(info.clock_khz);
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(info.sms);
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return info.pci_bus;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
      return info.pci_device;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
      return info.pci_domain;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return static_cast<int>(info.memory_clock_khz);
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return static_cast<int>(info.memory_bus_bits);
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return static_cast<int>(info.l2_bytes);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return static_cast<int>(info.sm_threads);
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return static_cast<int>(info.sm_ctas);
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return static_cast<int>(info.copy_engines);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return info.compute_major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return info.compute_minor;
    case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID:
      return device;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return 2;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
      return info.max_cluster_size > 1 ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
      return info.multicast ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return info.host_handles ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
      return info.ranges ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
      return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR |
             (info.fabric ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_NONE);
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
      return info.fabric ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
      return 1;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
      return -1;
    default:
      for (const Fixed& fixed : kFixed) {
        if (fixed.attribute == attribute) return fixed.value;
      }
      *known = attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX;
      return 0;
  }
}

}  // namespace

CUresult cuDeviceGetCount(int* count) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(TheDriver().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (name == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, static_cast<std::size_t>(size), "%s",
           TheDriver().devices[static_cast<std::size_t>(device)].name.c_str());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memcpy(uuid->bytes, TheDriver().devices[static_cast<std::size_t>(device)].uuid.data(), 16);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = TheDriver().devices[static_cast<std::size_t>(device)].memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool known;
  *value =
      Attribute(TheDriver().devices[static_cast<std::size_t>(device)], device, attribute, &known);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  const CUresult result =
      cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (result != CUDA_SUCCESS) return result;
  return cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (text == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const wire::DeviceInfo& info = TheDriver().devices[static_cast<std::size_t>(device)];
  const int length =
      snprintf(text, static_cast<std::size_t>(size), "%04x:%02x:%02x.0",
               static_cast<unsigned>(info.pci_domain), static_cast<unsigned>(info.pci_bus),
               static_cast<unsigned>(info.pci_device));
  return length < size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, number = 0;
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &number) != 3) {
    domain = 0;
    if (sscanf(text, "%x:%x", &bus, &number) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  const auto& devices = TheDriver().devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].pci_domain == static_cast<int>(domain) &&
        devices[i].pci_bus == static_cast<int>(bus) &&
        devices[i].pci_device == static_cast<int>(number)) {
      *device = static_cast<int>(i);
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_DEVICE;
}
