// Copies of two and three dimensions: from their descriptions to regions.
#include "shim/cuda/driver.h"

using namespace allranks::shim;

namespace {

// One end of a copy as CUDA describes it.
struct End {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  std::size_t x, y, z;
  std::size_t pitch, height;  // of the whole: bytes of a row, rows of a plane
};

constexpr std::size_t kMaxPitch = 0x7fffffff;

// The first byte of the region, its pitch and its slice. `depth` > 1 needs a plane's height.
CUresult Locate(const End& end, std::size_t width, std::size_t height, std::size_t depth,
                std::uint64_t* address, std::uint64_t* pitch, std::uint64_t* slice) {
  switch (end.type) {
    case CU_MEMORYTYPE_HOST:
      *address = reinterpret_cast<std::uint64_t>(end.host);
      if (IsDeviceMemory(*address)) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_MEMORYTYPE_DEVICE:
      *address = end.device;
      if (!IsNodeAddress(*address)) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      *address = end.device;
      break;
    case CU_MEMORYTYPE_ARRAY:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (*address == 0) return CUDA_ERROR_INVALID_VALUE;
  *pitch = end.pitch != 0 ? end.pitch : width + end.x;
  const std::size_t rows = end.height != 0 ? end.height : height + end.y;
  if (width + end.x > *pitch && height > 1) return CUDA_ERROR_INVALID_VALUE;
  if (height + end.y > rows && depth > 1) return CUDA_ERROR_INVALID_VALUE;
  *slice = *pitch * rows;
  *address += end.z * *slice + end.y * *pitch + end.x;
  return CUDA_SUCCESS;
}

CUresult RegionOfEnds(const End& src, const End& dst, std::size_t width, std::size_t height,
                      std::size_t depth, Region* region) {
  region->width = width;
  region->rows.height = height;
  region->rows.depth = depth;
  if (width == 0 || height == 0 || depth == 0) return CUDA_SUCCESS;
  const CUresult result = Locate(src, width, height, depth, &region->src, &region->rows.src_pitch,
                                 &region->rows.src_slice);
  if (result != CUDA_SUCCESS) return result;
  return Locate(dst, width, height, depth, &region->dst, &region->rows.dst_pitch,
                &region->rows.dst_slice);
}

CUresult CopyBlock(bool per_thread, const End& src, const End& dst, std::size_t width,
                   std::size_t height, std::size_t depth, CUstream stream, bool async) {
  Context* context;
  const CUresult ready = Current(&context);
  if (ready != CUDA_SUCCESS) return ready;
  if (width == 0 || height == 0 || depth == 0) return CUDA_SUCCESS;
  Region region;
  const CUresult result = RegionOfEnds(src, dst, width, height, depth, &region);
  return result == CUDA_SUCCESS ? CopyRegion(region, stream, per_thread, async) : result;
}

CUresult Copy2D(bool per_thread, const CUDA_MEMCPY2D* copy, CUstream stream, bool async,
                bool aligned) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (aligned && (copy->srcPitch > kMaxPitch || copy->dstPitch > kMaxPitch))
    return CUDA_ERROR_INVALID_VALUE;
  const End src{copy->srcMemoryType, copy->srcHost,
                copy->srcDevice,     copy->srcXInBytes,
                copy->srcY,          0,
                copy->srcPitch,      0};
  const End dst{copy->dstMemoryType, copy->dstHost,
                copy->dstDevice,     copy->dstXInBytes,
                copy->dstY,          0,
                copy->dstPitch,      0};
  return CopyBlock(per_thread, src, dst, copy->WidthInBytes, copy->Height, 1, stream, async);
}

// For CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER, whose contexts say nothing that the addresses do not.
template <class T>
End SourceOf(const T& copy) {
  return {copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes,
          copy.srcY,          copy.srcZ,    copy.srcPitch,  copy.srcHeight};
}
template <class T>
End TargetOf(const T& copy) {
  return {copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes,
          copy.dstY,          copy.dstZ,    copy.dstPitch,  copy.dstHeight};
}

template <class T>
CUresult Copy3D(bool per_thread, const T* copy, CUstream stream, bool async) {
  if (copy == nullptr || copy->srcLOD != 0 || copy->dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  return CopyBlock(per_thread, SourceOf(*copy), TargetOf(*copy), copy->WidthInBytes, copy->Height,
                   copy->Depth, stream, async);
}

}  // namespace

CUresult allranks::shim::RegionOf(const CUDA_MEMCPY3D& copy, Region* region) {
  if (copy.srcLOD != 0 || copy.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  return RegionOfEnds(SourceOf(copy), TargetOf(copy), copy.WidthInBytes, copy.Height, copy.Depth,
                      region);
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D* copy) { return Copy2D(false, copy, nullptr, false, true); }
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* copy) {
  return Copy2D(false, copy, nullptr, false, false);
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Copy2D(false, copy, stream, true, true);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpy2D_v2_ptds, (const CUDA_MEMCPY2D* copy)) {
  return Copy2D(true, copy, nullptr, false, true);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpy2DUnaligned_v2_ptds, (const CUDA_MEMCPY2D* copy)) {
  return Copy2D(true, copy, nullptr, false, false);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpy2DAsync_v2_ptsz, (const CUDA_MEMCPY2D* copy, CUstream stream)) {
  return Copy2D(true, copy, stream, true, true);
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D* copy) { return Copy3D(false, copy, nullptr, false); }
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return Copy3D(false, copy, stream, true);
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return Copy3D(false, copy, nullptr, false);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return Copy3D(false, copy, stream, true);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpy3D_v2_ptds, (const CUDA_MEMCPY3D* copy)) {
  return Copy3D(true, copy, nullptr, false);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpy3DAsync_v2_ptsz, (const CUDA_MEMCPY3D* copy, CUstream stream)) {
  return Copy3D(true, copy, stream, true);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpy3DPeer_ptds, (const CUDA_MEMCPY3D_PEER* copy)) {
  return Copy3D(true, copy, nullptr, false);
}
ALLRANKS_SYMBOL(CUresult, cuMemcpy3DPeerAsync_ptsz,
                (const CUDA_MEMCPY3D_PEER* copy, CUstream stream)) {
  return Copy3D(true, copy, stream, true);
}
