// Batches: copies, prefetches and discards that one call enqueues. The order within a batch is not
// promised by CUDA; here it is the order given. Attributes and hints change nothing.
#include "shim/cuda/driver.h"

using namespace allranks::shim;

namespace {

// What every batch demands of its stream: the legacy default stream is refused.
CUresult Begin(bool per_thread, CUstream stream) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  const bool legacy = stream == CU_STREAM_LEGACY || (stream == nullptr && !per_thread);
  return legacy ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Lists of entries [0, count) of which each attribute counts from its index on.
bool IndicesFit(const size_t* indices, size_t attributes, size_t count) {
  if (indices == nullptr || attributes == 0 || attributes > count || indices[0] != 0) return false;
  for (size_t i = 1; i < attributes; ++i) {
    if (indices[i] <= indices[i - 1] || indices[i] >= count) return false;
  }
  return true;
}

CUresult Copies(bool per_thread, CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                CUstream stream, size_t* failed = nullptr) {
  if (failed != nullptr) *failed = SIZE_MAX;
  const CUresult begun = Begin(per_thread, stream);
  if (begun != CUDA_SUCCESS) return begun;
  if (dsts == nullptr || srcs == nullptr || sizes == nullptr || count == 0 ||
      attributes == nullptr || !IndicesFit(indices, attribute_count, count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto fail = [&](size_t i, CUresult result) {
    if (failed != nullptr) *failed = i;
    return result;
  };
  for (size_t i = 0; i < count; ++i) {
    if (sizes[i] == 0 || dsts[i] == 0 || srcs[i] == 0) return fail(i, CUDA_ERROR_INVALID_VALUE);
  }
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = CopyAny(dsts[i], srcs[i], sizes[i], stream, per_thread, true);
    if (result != CUDA_SUCCESS) return fail(i, result);
  }
  return CUDA_SUCCESS;
}

// Without arrays an element is a byte. A length or height of 0 means: as large as the extent.
CUresult Operand(const CUmemcpy3DOperand& operand, const CUextent3D& extent, std::uint64_t* address,
                 std::uint64_t* pitch, std::uint64_t* slice) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return CUDA_ERROR_INVALID_VALUE;
  const auto& place = operand.op.ptr;
  const std::size_t rows = place.layerHeight != 0 ? place.layerHeight : extent.height;
  *pitch = place.rowLength != 0 ? place.rowLength : extent.width;
  if (place.ptr == 0 || *pitch < extent.width || rows < extent.height) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *slice = *pitch * rows;
  *address = place.ptr;
  return CUDA_SUCCESS;
}

CUresult Copies3D(bool per_thread, size_t count, CUDA_MEMCPY3D_BATCH_OP* list,
                  unsigned long long flags, CUstream stream, size_t* failed = nullptr) {
  if (failed != nullptr) *failed = SIZE_MAX;
  const CUresult begun = Begin(per_thread, stream);
  if (begun != CUDA_SUCCESS) return begun;
  if (count == 0 || list == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUextent3D& extent = list[i].extent;
    Region region;
    region.width = extent.width;
    region.rows.height = extent.height;
    region.rows.depth = extent.depth;
    CUresult result = extent.width == 0 || extent.height == 0 || extent.depth == 0
                          ? CUDA_ERROR_INVALID_VALUE
                          : Operand(list[i].src, extent, &region.src, &region.rows.src_pitch,
                                    &region.rows.src_slice);
    if (result == CUDA_SUCCESS) {
      result =
          Operand(list[i].dst, extent, &region.dst, &region.rows.dst_pitch, &region.rows.dst_slice);
    }
    if (result == CUDA_SUCCESS) result = CopyRegion(region, stream, per_thread, true);
    if (result == CUDA_SUCCESS) continue;
    if (failed != nullptr) *failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}

// Without locations: a discard, after which the contents are anything, for example what they were.
CUresult Prefetches(bool per_thread, CUdeviceptr* addresses, size_t* sizes, size_t count,
                    CUmemLocation* locations, size_t* indices, size_t location_count,
                    unsigned long long flags, CUstream stream) {
  const CUresult begun = Begin(per_thread, stream);
  if (begun != CUDA_SUCCESS) return begun;
  if (addresses == nullptr || sizes == nullptr || count == 0 || flags != 0 ||
      (locations != nullptr && !IndicesFit(indices, location_count, count))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (per_thread && stream == nullptr) stream = CU_STREAM_PER_THREAD;
  size_t which = 0;
  for (size_t i = 0; i < count; ++i) {
    if (locations == nullptr) {
      HostRange range;
      if (!TheDriver().host_ranges.Find(addresses[i], &range) ||
          range.kind < HostRange::Kind::kManaged ||
          sizes[i] > range.size - (addresses[i] - range.base)) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      continue;
    }
    if (which + 1 < location_count && indices[which + 1] <= i) ++which;
    const CUresult result = cuMemPrefetchAsync(addresses[i], sizes[i], locations[which], 0, stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                            CUstream stream) {
  return Copies(false, dsts, srcs, sizes, count, attributes, indices, attribute_count, stream);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpyBatchAsync_v2_ptsz,
                (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                 CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                 CUstream stream)) {
  return Copies(true, dsts, srcs, sizes, count, attributes, indices, attribute_count, stream);
}
#undef cuMemcpyBatchAsync
ALLRANKS_SYMBOL(CUresult, cuMemcpyBatchAsync,
                (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                 CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                 size_t* failed, CUstream stream)) {
  return Copies(false, dsts, srcs, sizes, count, attributes, indices, attribute_count, stream,
                failed);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpyBatchAsync_ptsz,
                (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                 CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                 size_t* failed, CUstream stream)) {
  return Copies(true, dsts, srcs, sizes, count, attributes, indices, attribute_count, stream,
                failed);
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags,
                              CUstream stream) {
  return Copies3D(false, count, list, flags, stream);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpy3DBatchAsync_v2_ptsz,
                (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags,
                 CUstream stream)) {
  return Copies3D(true, count, list, flags, stream);
}
#undef cuMemcpy3DBatchAsync
ALLRANKS_SYMBOL(CUresult, cuMemcpy3DBatchAsync,
                (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed,
                 unsigned long long flags, CUstream stream)) {
  return Copies3D(false, count, list, flags, stream, failed);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpy3DBatchAsync_ptsz,
                (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed,
                 unsigned long long flags, CUstream stream)) {
  return Copies3D(true, count, list, flags, stream, failed);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                 CUmemLocation* locations, size_t* indices, size_t location_count,
                                 unsigned long long flags, CUstream stream) {
  if (locations == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Prefetches(false, addresses, sizes, count, locations, indices, location_count, flags,
                    stream);
}
ALLRANKS_SYMBOL(CUresult, cuMemPrefetchBatchAsync_ptsz,
                (CUdeviceptr * addresses, size_t* sizes, size_t count, CUmemLocation* locations,
                 size_t* indices, size_t location_count, unsigned long long flags,
                 CUstream stream)) {
  if (locations == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Prefetches(true, addresses, sizes, count, locations, indices, location_count, flags,
                    stream);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                unsigned long long flags, CUstream stream) {
  return Prefetches(false, addresses, sizes, count, nullptr, nullptr, 0, flags, stream);
}
ALLRANKS_SYMBOL(CUresult, cuMemDiscardBatchAsync_ptsz,
                (CUdeviceptr * addresses, size_t* sizes, size_t count, unsigned long long flags,
                 CUstream stream)) {
  return Prefetches(true, addresses, sizes, count, nullptr, nullptr, 0, flags, stream);
}
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                           CUmemLocation* locations, size_t* indices,
                                           size_t location_count, unsigned long long flags,
                                           CUstream stream) {
  return cuMemPrefetchBatchAsync(addresses, sizes, count, locations, indices, location_count, flags,
                                 stream);
}
ALLRANKS_SYMBOL(CUresult, cuMemDiscardAndPrefetchBatchAsync_ptsz,
                (CUdeviceptr * addresses, size_t* sizes, size_t count, CUmemLocation* locations,
                 size_t* indices, size_t location_count, unsigned long long flags,
                 CUstream stream)) {
  return cuMemPrefetchBatchAsync_ptsz(addresses, sizes, count, locations, indices, location_count,
                                      flags, stream);
}
