// Batches of the runtime API: copies, prefetches, discards.
#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
static_assert(sizeof(cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

cudaStream_t Own(cudaStream_t stream) { return stream == nullptr ? cudaStreamPerThread : stream; }

CUdeviceptr* Driver(const void* const* pointers) {
  return reinterpret_cast<CUdeviceptr*>(const_cast<void**>(pointers));
}

}  // namespace

cudaError_t cudaMemcpyBatchAsync(void* const* dsts, const void* const* srcs, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes* attributes, size_t* indices,
                                 size_t attribute_count, cudaStream_t stream) {
  ALLRANKS_ENTER();
  return Note(cuMemcpyBatchAsync(Driver(dsts), Driver(srcs), const_cast<size_t*>(sizes), count,
                                 reinterpret_cast<CUmemcpyAttributes*>(attributes), indices,
                                 attribute_count, stream));
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpyBatchAsync_ptsz,
                (void* const* dsts, const void* const* srcs, const size_t* sizes, size_t count,
                 cudaMemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                 cudaStream_t stream)) {
  return cudaMemcpyBatchAsync(dsts, srcs, sizes, count, attributes, indices, attribute_count,
                              Own(stream));
}

cudaError_t cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* list,
                                   unsigned long long flags, cudaStream_t stream) {
  ALLRANKS_ENTER();
  return Note(
      cuMemcpy3DBatchAsync(count, reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(list), flags, stream));
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpy3DBatchAsync_ptsz,
                (size_t count, cudaMemcpy3DBatchOp* list, unsigned long long flags,
                 cudaStream_t stream)) {
  return cudaMemcpy3DBatchAsync(count, list, flags, Own(stream));
}

cudaError_t cudaMemPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count,
                                      cudaMemLocation* locations, size_t* indices,
                                      size_t location_count, unsigned long long flags,
                                      cudaStream_t stream) {
  ALLRANKS_ENTER();
  return Note(cuMemPrefetchBatchAsync(Driver(pointers), sizes, count,
                                      reinterpret_cast<CUmemLocation*>(locations), indices,
                                      location_count, flags, stream));
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemPrefetchBatchAsync_ptsz,
                (void** pointers, size_t* sizes, size_t count, cudaMemLocation* locations,
                 size_t* indices, size_t location_count, unsigned long long flags,
                 cudaStream_t stream)) {
  return cudaMemPrefetchBatchAsync(pointers, sizes, count, locations, indices, location_count,
                                   flags, Own(stream));
}

cudaError_t cudaMemDiscardBatchAsync(void** pointers, size_t* sizes, size_t count,
                                     unsigned long long flags, cudaStream_t stream) {
  ALLRANKS_ENTER();
  return Note(cuMemDiscardBatchAsync(Driver(pointers), sizes, count, flags, stream));
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemDiscardBatchAsync_ptsz,
                (void** pointers, size_t* sizes, size_t count, unsigned long long flags,
                 cudaStream_t stream)) {
  return cudaMemDiscardBatchAsync(pointers, sizes, count, flags, Own(stream));
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count,
                                                cudaMemLocation* locations, size_t* indices,
                                                size_t location_count, unsigned long long flags,
                                                cudaStream_t stream) {
  return cudaMemPrefetchBatchAsync(pointers, sizes, count, locations, indices, location_count,
                                   flags, stream);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemDiscardAndPrefetchBatchAsync_ptsz,
                (void** pointers, size_t* sizes, size_t count, cudaMemLocation* locations,
                 size_t* indices, size_t location_count, unsigned long long flags,
                 cudaStream_t stream)) {
  return cudaMemPrefetchBatchAsync(pointers, sizes, count, locations, indices, location_count,
                                   flags, Own(stream));
}
