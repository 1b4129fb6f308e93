// Memory by handles: physical allocations, reserved addresses, mappings and rights, multicast
// objects, and their export to other processes. All of it is the node's; a
// CUmemGenericAllocationHandle is the node's number. None of these functions needs a context.
#include "shim/cuda/driver.h"
#include "shim/cuda/share.h"

using namespace allranks::shim;
namespace wire = allranks::wire;

namespace {

// Of memory and of multicast objects, the least and the best.
constexpr std::size_t kGranularity = std::size_t{2} << 20;
constexpr unsigned long long kShareable =
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;

bool IsHost(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST ||
         location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

wire::MemoryPlace PlaceOf(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST        ? wire::MemoryPlace::kHost
         : location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ? wire::MemoryPlace::kHostNuma
                                                           : wire::MemoryPlace::kDevice;
}

// Whether memory of these properties can be had, apart from its size.
CUresult CheckProperties(const CUmemAllocationProp* properties) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (properties->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (!IsDevice(properties->location.id)) return CUDA_ERROR_INVALID_DEVICE;
      break;
    case CU_MEM_LOCATION_TYPE_HOST:
      // Has no way to other processes.
      if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      // cuda.h: it must be 0 where there are no NUMA nodes (CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID is
      // -1).
      if (properties->location.id != 0) return CUDA_ERROR_INVALID_VALUE;
      break;
    default:  // cuda.h: HOST_NUMA_CURRENT is no place for memory either
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (properties->type == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
  if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->win32HandleMetaData != nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto share = static_cast<unsigned long long>(properties->requestedHandleTypes);
  if ((share & ~kShareable) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (IsHost(properties->location)) {
    // Another host cannot reach it, and fabric handles are for other hosts.
    if (!TheDriver().devices.front().host_handles || (share & CU_MEM_HANDLE_TYPE_FABRIC) != 0)
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  if ((share & CU_MEM_HANDLE_TYPE_FABRIC) != 0 && !TheDriver().devices.front().fabric) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  // Tile pools are for sparse arrays, which there are none of.
  return properties->allocFlags.usage != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

// Lets the program's own code use what it has mapped in the range so.
void ProtectMapped(std::uint64_t address, std::uint64_t size, CUmemAccess_flags flags) {
  HostRange range;
  for (std::uint64_t at = address; TheDriver().host_ranges.FindMapped(at, address + size, &range);
       at = range.base + range.size) {
    ar_protect_pinned(range.base, flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
                      flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
}

CUresult CheckMulticast(const CUmulticastObjectProp* properties) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (properties == nullptr || properties->flags != 0 || properties->numDevices == 0 ||
      (properties->handleTypes & ~kShareable) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return TheDriver().devices.front().multicast ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

// --- handles -----------------------------------------------------------------------------------

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
  const CUresult result = CheckProperties(properties);
  if (result != CUDA_SUCCESS) return result;
  if (granularity == nullptr || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
                                 option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  const CUresult result = CheckProperties(properties);
  if (result != CUDA_SUCCESS) return result;
  if (handle == nullptr || size == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  wire::CreateMemory request;
  request.device = properties->location.id;
  request.size = size;
  request.share = static_cast<std::uint32_t>(properties->requestedHandleTypes);
  request.place = PlaceOf(properties->location);
  wire::HandleReply reply;
  const int status = Call(request, &reply);
  if (status == 0) *handle = reply.handle;
  return Result(status);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const CUresult ready = Ready();
  return ready != CUDA_SUCCESS ? ready : Result(Call(wire::ReleaseMemory{handle}));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::HandleReply reply;
  const int status = Call(wire::RetainMemory{reinterpret_cast<std::uint64_t>(address)}, &reply);
  if (status == 0) *handle = reply.handle;
  return Result(status);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::MemoryInfoReply reply;
  const int status = Call(wire::MemoryInfo{handle}, &reply);
  if (status != 0) return Result(status);
  if (reply.multicast) return CUDA_ERROR_INVALID_VALUE;
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->requestedHandleTypes = static_cast<CUmemAllocationHandleType>(reply.share);
  switch (reply.place) {
    case wire::MemoryPlace::kDevice:
      properties->location = {CU_MEM_LOCATION_TYPE_DEVICE, reply.device};
      break;
    case wire::MemoryPlace::kHost:
      properties->location.type = CU_MEM_LOCATION_TYPE_HOST;
      break;
    case wire::MemoryPlace::kHostNuma:
      properties->location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
      break;
  }
  return CUDA_SUCCESS;
}

// --- addresses ---------------------------------------------------------------------------------

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  wire::AddressReply reply;
  const int status = Call(wire::ReserveAddress{size, alignment, hint}, &reply);
  if (status == 0) *address = reply.address;
  return Result(status);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  const CUresult ready = Ready();
  return ready != CUDA_SUCCESS ? ready : Result(Call(wire::FreeAddress{address, size}));
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  wire::MapMemoryReply reply;
  int fd = -1;
  const int status = Call(wire::MapMemory{address, size, offset, handle}, &reply, &fd);
  if (status != 0 || reply.mapped == 0) return Result(status);
  if (fd < 0 || !ar_map_pinned(address, reply.mapped, fd)) {
    Call(wire::UnmapMemory{address, size});
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  ar_protect_pinned(address, false, false);  // until cuMemSetAccess
  TheDriver().host_ranges.Add({address, reply.mapped, HostRange::Kind::kMapped, 0});
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  // What has been stored there must have reached the node before the pages go.
  const int status = Call(wire::UnmapMemory{address, size});
  HostRange range;
  while (status == 0 && TheDriver().host_ranges.FindMapped(address, address + size, &range)) {
    ar_unmap_pinned(range.base);
    TheDriver().host_ranges.Remove(range.base);
  }
  return Result(status);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* rights,
                        size_t count) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (rights == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemAccess_flags flags = rights[i].flags;
    const CUmemLocation& location = rights[i].location;
    const bool of_device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    // The host has no rights on a device's memory: the node says so.
    if ((!of_device && !IsHost(location)) ||
        (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
         flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (of_device && !IsDevice(location.id)) return CUDA_ERROR_INVALID_DEVICE;
  }
  for (size_t i = 0; i < count; ++i) {
    const CUmemAccess_flags flags = rights[i].flags;
    const wire::MemoryPlace place = PlaceOf(rights[i].location);
    const int status = Call(wire::SetMemoryAccess{
        address, size, place == wire::MemoryPlace::kDevice ? rights[i].location.id : 0,
        static_cast<std::uint8_t>(flags), place});
    if (status != 0) return Result(status);
    if (place != wire::MemoryPlace::kDevice) ProtectMapped(address, size, flags);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (flags == nullptr || location == nullptr ||
      (location->type != CU_MEM_LOCATION_TYPE_DEVICE && !IsHost(*location))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool of_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (of_device && !IsDevice(location->id)) return CUDA_ERROR_INVALID_DEVICE;
  wire::GetMemoryAccessReply reply;
  const int status = Call(
      wire::GetMemoryAccess{address, of_device ? location->id : 0, PlaceOf(*location)}, &reply);
  if (status == 0) *flags = reply.flags;
  return Result(status);
}

// --- sharing -----------------------------------------------------------------------------------

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return ExportTo(wire::ExportMemory{handle}, type, out);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* from,
                                        CUmemAllocationHandleType type) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::HandleReply reply;
  const CUresult result = ImportFrom(wire::ImportMemory{}, type, from, &reply);
  if (result == CUDA_SUCCESS) *handle = reply.handle;
  return result;
}

CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t size,
                                       CUmemRangeHandleType type, unsigned long long flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
      (flags & ~std::uint64_t{CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // A choice of ways exists only where a device has more of them than PCIe.
  if (flags != 0 || !TheDriver().devices.front().ranges) return CUDA_ERROR_NOT_SUPPORTED;
  int fd = -1;
  wire::Empty reply;
  const int status = Call(wire::ExportRange{address, size}, &reply, &fd);
  if (status != 0) return Result(status);
  if (fd < 0) return CUDA_ERROR_UNKNOWN;
  memcpy(handle, &fd, sizeof fd);
  return CUDA_SUCCESS;
}

// --- multicast objects -------------------------------------------------------------------------

CUresult cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp* properties,
                                   CUmulticastGranularity_flags option) {
  const CUresult result = CheckMulticast(properties);
  if (result != CUDA_SUCCESS) return result;
  if (granularity == nullptr || (option != CU_MULTICAST_GRANULARITY_MINIMUM &&
                                 option != CU_MULTICAST_GRANULARITY_RECOMMENDED)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle,
                           const CUmulticastObjectProp* properties) {
  const CUresult result = CheckMulticast(properties);
  if (result != CUDA_SUCCESS) return result;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::CreateMulticast request;
  request.devices = properties->numDevices;
  request.size = properties->size;
  request.share = static_cast<std::uint32_t>(properties->handleTypes);
  wire::HandleReply reply;
  const int status = Call(request, &reply);
  if (status == 0) *handle = reply.handle;
  return Result(status);
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return Result(Call(wire::AddMulticastDevice{handle, device}));
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                            CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                            unsigned long long flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (flags != 0 || memory == 0) return CUDA_ERROR_INVALID_VALUE;
  return Result(Call(wire::BindMulticast{handle, offset, memory, memory_offset, size}));
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset,
                             CUdeviceptr address, size_t size, unsigned long long flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Result(Call(wire::BindMulticast{handle, offset, 0, address, size}));
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
                           size_t size) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return Result(Call(wire::UnbindMulticast{handle, device, offset, size}));
}
