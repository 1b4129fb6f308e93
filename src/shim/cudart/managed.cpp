// Managed memory of the runtime API.
#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

CUmemLocation Driver(const cudaMemLocation& location) {
  CUmemLocation result{};
  result.type = static_cast<CUmemLocationType>(location.type);
  result.id = location.id;
  return result;
}

cudaStream_t Own(cudaStream_t stream) { return stream == nullptr ? cudaStreamPerThread : stream; }

}  // namespace

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned flags) {
  ALLRANKS_ENTER();
  if (pointer == nullptr || size == 0) return Note(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const CUresult result = cuMemAllocManaged(&address, size, flags);
  *pointer = reinterpret_cast<void*>(address);
  return Note(result);
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t size, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
  ALLRANKS_ENTER();
  return Note(cuMemPrefetchAsync(Ptr(pointer), size, Driver(location), flags, stream));
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemPrefetchAsync_ptsz,
                (const void* pointer, size_t size, cudaMemLocation location, unsigned flags,
                 cudaStream_t stream)) {
  return cudaMemPrefetchAsync(pointer, size, location, flags, Own(stream));
}

cudaError_t cudaMemAdvise(const void* pointer, size_t size, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
  ALLRANKS_ENTER();
  return Note(cuMemAdvise(Ptr(pointer), size, static_cast<CUmem_advise>(advice), Driver(location)));
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t data_size, cudaMemRangeAttribute attribute,
                                     const void* pointer, size_t size) {
  ALLRANKS_ENTER();
  return Note(cuMemRangeGetAttribute(data, data_size, static_cast<CUmem_range_attribute>(attribute),
                                     Ptr(pointer), size));
}
cudaError_t cudaMemRangeGetAttributes(void** data, size_t* data_sizes,
                                      cudaMemRangeAttribute* attributes, size_t count,
                                      const void* pointer, size_t size) {
  ALLRANKS_ENTER();
  return Note(cuMemRangeGetAttributes(data, data_sizes,
                                      reinterpret_cast<CUmem_range_attribute*>(attributes), count,
                                      Ptr(pointer), size));
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t length,
                                     unsigned flags) {
  ALLRANKS_ENTER();
  return Note(cuStreamAttachMemAsync(stream, Ptr(pointer), length, flags));
}
ALLRANKS_SYMBOL(cudaError_t, cudaStreamAttachMemAsync_ptsz,
                (cudaStream_t stream, void* pointer, size_t length, unsigned flags)) {
  return cudaStreamAttachMemAsync(Own(stream), pointer, length, flags);
}
