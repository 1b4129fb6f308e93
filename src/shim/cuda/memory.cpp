// Allocation of device memory, what a pointer is, and memory shared between processes.
#include <string.h>

#include "shim/cuda/capture.h"
#include "shim/cuda/driver.h"

using namespace allranks::shim;
namespace wire = allranks::wire;

// --- allocation --------------------------------------------------------------------------------

CUresult cuMemAlloc(CUdeviceptr* address, size_t size) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (address == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult captured = CheckUnsafeCall(); captured != CUDA_SUCCESS) return captured;
  wire::Alloc alloc;
  alloc.device = context->device;
  alloc.size = size;
  wire::AddressReply reply;
  const int status = Call(alloc, &reply);
  if (status == 0) *address = reply.address;
  return Result(status);
}

CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                         unsigned element) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (pitch == nullptr || width == 0 || height == 0 ||
      (element != 4 && element != 8 && element != 16)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::size_t size = 0;
  *pitch = (width + 511) / 512 * 512;
  if (*pitch < width || __builtin_mul_overflow(*pitch, height, &size)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return cuMemAlloc(address, size);
}

CUresult cuMemFree(CUdeviceptr address) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (address == 0) return CUDA_SUCCESS;
  if (HostRange range; TheDriver().host_ranges.Find(address, &range)) {
    if (range.base != address || range.kind != HostRange::Kind::kManaged) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult result = FreeHost(address);
    if (result == CUDA_SUCCESS) TheDriver().host_ranges.Remove(address);
    return result;
  }
  // Freeing waits for what may still use the memory, as the real driver does.
  const CUresult idle = cuCtxSynchronize();
  if (idle != CUDA_SUCCESS) return idle;
  wire::Free request;
  request.address = address;
  return Result(Call(request));
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  wire::MemInfo request;
  request.device = context->device;
  wire::MemInfoReply reply;
  const int status = Call(request, &reply);
  if (free != nullptr) *free = reply.free;
  if (total != nullptr) *total = reply.total;
  return Result(status);
}

// --- what a pointer is -------------------------------------------------------------------------

namespace {

CUresult Describe(CUdeviceptr address, wire::DescribeReply* reply) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsNodeAddress(address)) return CUDA_ERROR_INVALID_VALUE;
  wire::Describe request;
  request.address = address;
  const int status = Call(request, reply);
  if (status != 0) return Result(status);
  return reply->kind == wire::DescribeReply::Kind::kUnknown ? CUDA_ERROR_INVALID_VALUE
                                                            : CUDA_SUCCESS;
}

// Of memory by handles: cuMemSetAccess decides.
bool HostMayRead(CUdeviceptr address) {
  const CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
  unsigned long long flags = 0;
  return cuMemGetAccess(&flags, &host, address) == CUDA_SUCCESS && flags != 0;
}

template <class T>
void Store(void* place, T value) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): some attributes are pointers
  memcpy(place, static_cast<const void*>(&value), sizeof(T));
}

}  // namespace

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  wire::DescribeReply reply;
  const CUresult result = Describe(address, &reply);
  if (result == CUDA_ERROR_INVALID_VALUE) return CUDA_ERROR_NOT_FOUND;
  if (result != CUDA_SUCCESS) return result;
  if (reply.kind == wire::DescribeReply::Kind::kReserved) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = reply.base;
  if (size != nullptr) *size = reply.size;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::DescribeReply reply;
  const CUresult result = Describe(address, &reply);
  if (result != CUDA_SUCCESS) return result;
  // Of addresses with nothing behind them little can be said.
  const bool mapped = reply.kind != wire::DescribeReply::Kind::kReserved;
  if (!mapped && attribute != CU_POINTER_ATTRIBUTE_MAPPED &&
      attribute != CU_POINTER_ATTRIBUTE_RANGE_START_ADDR &&
      attribute != CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Managed memory counts as the device's, and the host has it as well.
  const bool device = reply.kind != wire::DescribeReply::Kind::kPinned;
  const bool host = reply.kind != wire::DescribeReply::Kind::kDevice;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      // Memory by handles belongs to no context.
      Store(value, reply.device >= 0 && reply.device < kMaxDevices && !reply.mapped_handle
                       ? &TheDriver().primary[reply.device]
                       : static_cast<Context*>(nullptr));
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      Store(value, device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      Store(value, address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!host || (reply.mapped_handle && !HostMayRead(address))) return CUDA_ERROR_INVALID_VALUE;
      Store(value, address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      Store(value, static_cast<unsigned long long>(reply.base));
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      Store(value, reply.kind == wire::DescribeReply::Kind::kManaged ? 1u : 0u);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      Store(value, reply.device);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      Store(value, host || reply.mapped_handle || reply.pool != 0 ? 0u : 1u);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      Store(value, reply.range);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      Store(value, static_cast<std::size_t>(reply.range_size));
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      Store(value, static_cast<unsigned long long>(reply.share));
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      Store(value, static_cast<unsigned long long>(reply.object));
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      CUmemoryPool pool = nullptr;
      TheDriver().pools.ForEach([&](Pool* one) {
        if (reply.pool != 0 && one->id == reply.pool) pool = reinterpret_cast<CUmemoryPool>(one);
      });
      Store(value, pool);
      return CUDA_SUCCESS;
    }
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      Store(value, reply.base);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      Store(value, static_cast<std::size_t>(reply.size));
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      Store(value, mapped ? 1u : 0u);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      Store(value, 0u);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                CUdeviceptr address) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  for (unsigned i = 0; i < count; ++i) {
    if (cuPointerGetAttribute(values[i], attributes[i], address) == CUDA_SUCCESS) continue;
    // Unknown to the node: not an error here, but an answer.
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        Store(values[i], -2);
        break;
      case CU_POINTER_ATTRIBUTE_CONTEXT:
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        Store(values[i], static_cast<void*>(nullptr));
        break;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        Store(values[i], 0u);
        break;
      default:
        break;
    }
  }
  return CUDA_SUCCESS;
}

// The one attribute that can be set asks for synchronous copies, for the sake of other devices on
// the bus; copies here are seen by everybody in order.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  wire::DescribeReply reply;
  const CUresult result = Describe(address, &reply);
  if (result != CUDA_SUCCESS) return result;
  return value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

// --- sharing between processes -----------------------------------------------------------------

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr || !IsDeviceAddress(address)) return CUDA_ERROR_INVALID_VALUE;
  wire::IpcExport request;
  request.address = address;
  wire::IpcExportReply reply;
  const int status = Call(request, &reply);
  static_assert(sizeof handle->reserved == sizeof reply.handle);
  if (status == 0) memcpy(handle->reserved, reply.handle.data(), sizeof reply.handle);
  return Result(status);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (address == nullptr || (flags & ~unsigned{CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  wire::IpcOpen request;
  request.device = context->device;
  memcpy(request.handle.data(), handle.reserved, sizeof handle.reserved);
  wire::AddressReply reply;
  const int status = Call(request, &reply);
  if (status == 0) *address = reply.address;
  return Result(status);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  wire::IpcClose request;
  request.address = address;
  return Result(Call(request));
}
