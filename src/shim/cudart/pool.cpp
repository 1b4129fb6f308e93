// Stream-ordered memory and pools of the runtime API.
#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

cudaStream_t Own(cudaStream_t stream) { return stream == nullptr ? cudaStreamPerThread : stream; }

// Nothing is an address of nothing, as with cudaMalloc.
cudaError_t Allocate(void** pointer, size_t size, cudaMemPool_t* pool, cudaStream_t stream) {
  ALLRANKS_ENTER();
  if (pointer == nullptr) return Note(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (size == 0) return cudaSuccess;
  CUdeviceptr address = 0;
  const CUresult result = pool != nullptr ? cuMemAllocFromPoolAsync(&address, size, *pool, stream)
                                          : cuMemAllocAsync(&address, size, stream);
  *pointer = reinterpret_cast<void*>(address);
  return Note(result);
}

cudaError_t FreeIn(void* pointer, cudaStream_t stream) {
  ALLRANKS_ENTER();
  return Note(cuMemFreeAsync(Ptr(pointer), stream));
}

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

CUmemLocation* Driver(cudaMemLocation* location) {
  return reinterpret_cast<CUmemLocation*>(location);
}

}  // namespace

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  return Allocate(pointer, size, nullptr, stream);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMallocAsync_ptsz,
                (void** pointer, size_t size, cudaStream_t stream)) {
  return Allocate(pointer, size, nullptr, Own(stream));
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return Allocate(pointer, size, &pool, stream);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMallocFromPoolAsync_ptsz,
                (void** pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream)) {
  return Allocate(pointer, size, &pool, Own(stream));
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) { return FreeIn(pointer, stream); }
ALLRANKS_SYMBOL(cudaError_t, cudaFreeAsync_ptsz, (void* pointer, cudaStream_t stream)) {
  return FreeIn(pointer, Own(stream));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  ALLRANKS_ENTER();
  return Note(cuDeviceGetDefaultMemPool(pool, device));
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  ALLRANKS_ENTER();
  return Note(cuDeviceGetMemPool(pool, device));
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  ALLRANKS_ENTER();
  return Note(cuDeviceSetMemPool(device, pool));
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                     cudaMemAllocationType type) {
  ALLRANKS_ENTER();
  return Note(
      cuMemGetDefaultMemPool(pool, Driver(location), static_cast<CUmemAllocationType>(type)));
}
cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                              cudaMemAllocationType type) {
  ALLRANKS_ENTER();
  return Note(cuMemGetMemPool(pool, Driver(location), static_cast<CUmemAllocationType>(type)));
}
cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type,
                              cudaMemPool_t pool) {
  ALLRANKS_ENTER();
  return Note(cuMemSetMemPool(Driver(location), static_cast<CUmemAllocationType>(type), pool));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  ALLRANKS_ENTER();
  return Note(cuMemPoolCreate(pool, reinterpret_cast<const CUmemPoolProps*>(properties)));
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  ALLRANKS_ENTER();
  return Note(cuMemPoolDestroy(pool));
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  ALLRANKS_ENTER();
  return Note(cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  ALLRANKS_ENTER();
  return Note(cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  ALLRANKS_ENTER();
  return Note(cuMemPoolTrimTo(pool, keep));
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* map, size_t count) {
  ALLRANKS_ENTER();
  return Note(cuMemPoolSetAccess(pool, reinterpret_cast<const CUmemAccessDesc*>(map), count));
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  ALLRANKS_ENTER();
  return Note(
      cuMemPoolGetAccess(reinterpret_cast<CUmemAccess_flags*>(flags), pool, Driver(location)));
}

static_assert(sizeof(cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData));

cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                               cudaMemAllocationHandleType type, unsigned flags) {
  ALLRANKS_ENTER();
  return Note(cuMemPoolExportToShareableHandle(
      handle, pool, static_cast<CUmemAllocationHandleType>(type), flags));
}
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                                 cudaMemAllocationHandleType type, unsigned flags) {
  ALLRANKS_ENTER();
  return Note(cuMemPoolImportFromShareableHandle(
      pool, handle, static_cast<CUmemAllocationHandleType>(type), flags));
}
cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
  ALLRANKS_ENTER();
  return Note(
      cuMemPoolExportPointer(reinterpret_cast<CUmemPoolPtrExportData*>(data), Ptr(pointer)));
}
cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool,
                                     cudaMemPoolPtrExportData* data) {
  ALLRANKS_ENTER();
  if (pointer == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const CUresult result =
      cuMemPoolImportPointer(&address, pool, reinterpret_cast<CUmemPoolPtrExportData*>(data));
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return Note(result);
}
