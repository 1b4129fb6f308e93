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
      return CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (properties->type == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
  if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->win32HandleMetaData != nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto share = static_cast<unsigned long long>(properties->requestedHandleTypes);
  if ((share & ~kShareable) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if ((share & CU_MEM_HANDLE_TYPE_FABRIC) != 0 && !TheDriver().devices.front().fabric) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  // Tile pools are for sparse arrays, which there are none of.
  return properties->allocFlags.usage != 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
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
  properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties->location.id = reply.device;
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
  return Result(Call(wire::MapMemory{address, size, offset, handle}));
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  const CUresult ready = Ready();
  return ready != CUDA_SUCCESS ? ready : Result(Call(wire::UnmapMemory{address, size}));
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* rights,
                        size_t count) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (rights == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemAccess_flags flags = rights[i].flags;
    // The host has no rights on a device's memory.
    if (rights[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
         flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!IsDevice(rights[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
  }
  for (size_t i = 0; i < count; ++i) {
    const int status = Call(wire::SetMemoryAccess{address, size, rights[i].location.id,
                                                  static_cast<std::uint8_t>(rights[i].flags)});
    if (status != 0) return Result(status);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!IsDevice(location->id)) return CUDA_ERROR_INVALID_DEVICE;
  wire::GetMemoryAccessReply reply;
  const int status = Call(wire::GetMemoryAccess{address, location->id}, &reply);
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
