// Stream-ordered memory and the pools it comes from. A device's default pool has a handle for ever;
// its number is the node's and changes with a reset. Pools made with a handle type can be shared
// with other processes, and their allocations one by one.
#include "shim/cuda/driver.h"
#include "shim/cuda/share.h"

namespace allranks::shim {
namespace {

// The device's default pool; context_lock is held.
Pool* DefaultOf(int device) {
  Driver& driver = TheDriver();
  Pool*& pool = driver.default_pools[device];
  if (pool == nullptr) {
    pool = driver.pools.Add(new Pool);
    pool->device = device;
    pool->standard = true;
  }
  return pool;
}

// The node's number of a pool.
CUresult NumberOf(CUmemoryPool handle, std::uint64_t* number, Pool** found = nullptr) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Pool* pool = TheDriver().pools.Find(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (found != nullptr) *found = pool;
  if (pool->id == 0) {
    wire::DefaultPool request;
    request.device = pool->device;
    wire::PoolReply reply;
    const int status = Call(request, &reply);
    if (status != 0) return Result(status);
    pool->id = reply.pool;
  }
  *number = pool->id;
  return CUDA_SUCCESS;
}

CUresult AllocateFrom(bool per_thread, CUdeviceptr* address, size_t size, CUmemoryPool pool,
                      CUstream stream) {
  if (address == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  wire::AllocAsync request;
  CUresult result = ResolveStream(stream, per_thread, &request.stream);
  if (result != CUDA_SUCCESS) return result;
  if (pool == nullptr) {  // what the stream's device allocates from
    result = cuDeviceGetMemPool(&pool, request.stream.device);
    if (result != CUDA_SUCCESS) return result;
  }
  result = NumberOf(pool, &request.pool);
  if (result != CUDA_SUCCESS) return result;
  request.size = size;
  wire::AddressReply reply;
  const int status = Call(request, &reply);
  if (status == 0) *address = reply.address;
  return Result(status);
}

CUresult Do_cuMemAllocAsync(bool per_thread, CUdeviceptr* address, size_t size, CUstream stream) {
  return AllocateFrom(per_thread, address, size, nullptr, stream);
}

CUresult Do_cuMemAllocFromPoolAsync(bool per_thread, CUdeviceptr* address, size_t size,
                                    CUmemoryPool pool, CUstream stream) {
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AllocateFrom(per_thread, address, size, pool, stream);
}

CUresult Do_cuMemFreeAsync(bool per_thread, CUdeviceptr address, CUstream stream) {
  wire::FreeAsync request;
  const CUresult result = ResolveStream(stream, per_thread, &request.stream);
  if (result != CUDA_SUCCESS) return result;
  if (!IsDeviceAddress(address)) return CUDA_ERROR_INVALID_VALUE;
  request.address = address;
  return Result(Call(request));
}

}  // namespace

void ForgetPools(int device) {
  Driver& driver = TheDriver();
  Hold hold(driver.context_lock);
  driver.current_pools[device] = nullptr;
  std::vector<Pool*> gone;
  driver.pools.ForEach([&](Pool* pool) {
    if (pool->device != device) return;
    pool->id = 0;
    if (!pool->standard) gone.push_back(pool);
  });
  for (Pool* pool : gone) driver.pools.Remove(pool);
}

}  // namespace allranks::shim

using namespace allranks::shim;
namespace wire = allranks::wire;

// --- allocation --------------------------------------------------------------------------------

ALLRANKS_BOTH_STREAMS(cuMemAllocAsync, _ptsz, (CUdeviceptr * address, size_t size, CUstream stream),
                      address, size, stream)
ALLRANKS_BOTH_STREAMS(cuMemAllocFromPoolAsync, _ptsz,
                      (CUdeviceptr * address, size_t size, CUmemoryPool pool, CUstream stream),
                      address, size, pool, stream)
ALLRANKS_BOTH_STREAMS(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream stream), address,
                      stream)

// --- pools -------------------------------------------------------------------------------------

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Hold hold(TheDriver().context_lock);
  *pool = reinterpret_cast<CUmemoryPool>(DefaultOf(device));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Driver& driver = TheDriver();
  Hold hold(driver.context_lock);
  Pool* current = driver.current_pools[device];
  *pool = reinterpret_cast<CUmemoryPool>(current != nullptr ? current : DefaultOf(device));
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Pool* pool = TheDriver().pools.Find(handle);
  if (pool == nullptr || pool->device != device || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  Hold hold(TheDriver().context_lock);
  TheDriver().current_pools[device] = pool;
  return CUDA_SUCCESS;
}

namespace {

// Pools by location: only pinned memory of a device has one here.
CUresult DeviceAt(const CUmemLocation* location, CUmemAllocationType type, CUdevice* device) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  *device = location->id;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                CUmemAllocationType type) {
  CUdevice device = 0;
  const CUresult result = DeviceAt(location, type, &device);
  return result != CUDA_SUCCESS ? result : cuDeviceGetDefaultMemPool(pool, device);
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  CUdevice device = 0;
  const CUresult result = DeviceAt(location, type, &device);
  return result != CUDA_SUCCESS ? result : cuDeviceGetMemPool(pool, device);
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  CUdevice device = 0;
  const CUresult result = DeviceAt(location, type, &device);
  return result != CUDA_SUCCESS ? result : cuDeviceSetMemPool(device, pool);
}

CUresult cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr || properties == nullptr ||
      properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  constexpr auto kShareable =
      unsigned{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR} | unsigned{CU_MEM_HANDLE_TYPE_FABRIC};
  const auto share = static_cast<unsigned>(properties->handleTypes);
  const bool fabric = (share & CU_MEM_HANDLE_TYPE_FABRIC) != 0;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || (share & ~kShareable) != 0 ||
      (fabric && !TheDriver().devices.front().fabric)) {
    return properties->location.type == CU_MEM_LOCATION_TYPE_INVALID ? CUDA_ERROR_INVALID_VALUE
                                                                     : CUDA_ERROR_NOT_SUPPORTED;
  }
  if (!IsDevice(properties->location.id)) return CUDA_ERROR_INVALID_VALUE;
  wire::CreatePool request;
  request.device = properties->location.id;
  request.max_size = properties->maxSize;
  request.share = share;
  wire::PoolReply reply;
  const int status = Call(request, &reply);
  if (status != 0) return Result(status);
  auto* pool = new Pool;
  pool->id = reply.pool;
  pool->device = request.device;
  *handle = reinterpret_cast<CUmemoryPool>(TheDriver().pools.Add(pool));
  return CUDA_SUCCESS;
}

// If it was its device's current one, the default becomes it again.
CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  wire::DestroyPool request;
  Pool* pool = nullptr;
  const CUresult result = NumberOf(handle, &request.pool, &pool);
  if (result != CUDA_SUCCESS) return result;
  if (pool->standard) return CUDA_ERROR_INVALID_VALUE;
  Driver& driver = TheDriver();
  {
    Hold hold(driver.context_lock);
    if (!pool->imported && driver.current_pools[pool->device] == pool)
      driver.current_pools[pool->device] = nullptr;
  }
  driver.pools.Remove(pool);
  delete pool;
  return Result(Call(request));
}

namespace {

bool IsAttribute(CUmemPool_attribute attribute) {
  return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

// The first three attributes are ints, the others 64-bit numbers.
bool IsFlag(CUmemPool_attribute attribute) {
  return attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  wire::GetPoolAttribute request;
  const CUresult result = NumberOf(pool, &request.pool);
  if (result != CUDA_SUCCESS) return result;
  if (value == nullptr || !IsAttribute(attribute)) return CUDA_ERROR_INVALID_VALUE;
  request.attribute = static_cast<std::uint8_t>(attribute);
  wire::GetPoolAttributeReply reply;
  const int status = Call(request, &reply);
  if (status != 0) return Result(status);
  if (IsFlag(attribute)) {
    *static_cast<int*>(value) = static_cast<int>(reply.value);
  } else {
    *static_cast<cuuint64_t*>(value) = reply.value;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  wire::SetPoolAttribute request;
  const CUresult result = NumberOf(pool, &request.pool);
  if (result != CUDA_SUCCESS) return result;
  if (value == nullptr || !IsAttribute(attribute)) return CUDA_ERROR_INVALID_VALUE;
  request.attribute = static_cast<std::uint8_t>(attribute);
  request.value = IsFlag(attribute) ? static_cast<std::uint64_t>(*static_cast<int*>(value) != 0)
                                    : *static_cast<cuuint64_t*>(value);
  return Result(Call(request));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  wire::TrimPool request;
  const CUresult result = NumberOf(pool, &request.pool);
  if (result != CUDA_SUCCESS) return result;
  request.keep = keep;
  return Result(Call(request));
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  wire::SetPoolAccess request;
  const CUresult result = NumberOf(pool, &request.pool);
  if (result != CUDA_SUCCESS) return result;
  if (map == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !IsDevice(map[i].location.id) ||
        (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
         map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    request.device = map[i].location.id;
    request.access = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const int status = Call(request);
    if (status != 0) return Result(status);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  wire::GetPoolAccess request;
  const CUresult result = NumberOf(pool, &request.pool);
  if (result != CUDA_SUCCESS) return result;
  if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
      !IsDevice(location->id)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  request.device = location->id;
  wire::GetPoolAccessReply reply;
  const int status = Call(request, &reply);
  if (status == 0)
    *flags = reply.access ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return Result(status);
}

// --- sharing -----------------------------------------------------------------------------------

CUresult cuMemPoolExportToShareableHandle(void* out, CUmemoryPool pool,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  wire::ExportPool request;
  const CUresult result = NumberOf(pool, &request.pool);
  if (result != CUDA_SUCCESS) return result;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return ExportTo(request, type, out);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* handle, void* from,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  wire::ImportPoolReply reply;
  const CUresult result = ImportFrom(wire::ImportPool{}, type, from, &reply);
  if (result != CUDA_SUCCESS) return result;
  auto* pool = new Pool;
  pool->id = reply.pool;
  pool->device = reply.device;
  pool->imported = true;
  *handle = reinterpret_cast<CUmemoryPool>(TheDriver().pools.Add(pool));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr address) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (data == nullptr || !IsDeviceAddress(address)) return CUDA_ERROR_INVALID_VALUE;
  wire::IpcExportReply reply;
  const int status = Call(wire::ExportPointer{address}, &reply);
  static_assert(sizeof data->reserved == sizeof reply.handle);
  if (status == 0) memcpy(data->reserved, reply.handle.data(), sizeof reply.handle);
  return Result(status);
}

CUresult cuMemPoolImportPointer(CUdeviceptr* address, CUmemoryPool pool,
                                CUmemPoolPtrExportData* data) {
  wire::ImportPointer request;
  const CUresult result = NumberOf(pool, &request.pool);
  if (result != CUDA_SUCCESS) return result;
  if (address == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memcpy(request.data.data(), data->reserved, sizeof request.data);
  wire::AddressReply reply;
  const int status = Call(request, &reply);
  if (status == 0) *address = reply.address;
  return Result(status);
}
