// Copies of the runtime API between host and device memory, of one to three dimensions.
#include "shim/cudart/copy.h"

#include "shim/cudart/runtime.h"

namespace allranks::shim {

// Addresses tell where memory is; a kind that contradicts them is refused by the driver's call.
cudaError_t Copy(bool per_thread, void* dst, const void* src, std::size_t size, cudaMemcpyKind kind,
                 cudaStream_t stream, bool async) {
  ALLRANKS_ENTER();
  if (per_thread && stream == nullptr) stream = cudaStreamPerThread;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      if (async || per_thread) return Note(cuMemcpyHtoDAsync(Ptr(dst), src, size, stream));
      return Note(cuMemcpyHtoD(Ptr(dst), src, size));
    case cudaMemcpyDeviceToHost:
      if (async || per_thread) return Note(cuMemcpyDtoHAsync(dst, Ptr(src), size, stream));
      return Note(cuMemcpyDtoH(dst, Ptr(src), size));
    case cudaMemcpyDeviceToDevice:
      if (async || per_thread) return Note(cuMemcpyDtoDAsync(Ptr(dst), Ptr(src), size, stream));
      return Note(cuMemcpyDtoD(Ptr(dst), Ptr(src), size));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      if (async || per_thread) return Note(cuMemcpyAsync(Ptr(dst), Ptr(src), size, stream));
      return Note(cuMemcpy(Ptr(dst), Ptr(src), size));
    default:
      return Note(cudaErrorInvalidMemcpyDirection);
  }
}

}  // namespace allranks::shim

using namespace allranks::shim;

namespace {

constexpr std::size_t kMaxPitch = 0x7fffffff;

// A synchronous copy of the per-thread flavour is an asynchronous one and a wait.
cudaError_t WaitPerThread(cudaError_t error) {
  return error != cudaSuccess ? error : Note(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

bool TypesOf(cudaMemcpyKind kind, CUmemorytype* src, CUmemorytype* dst) {
  const auto pair = [&](CUmemorytype from, CUmemorytype to) {
    *src = from;
    *dst = to;
    return true;
  };
  switch (kind) {
    case cudaMemcpyHostToHost:
      return pair(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST);
    case cudaMemcpyHostToDevice:
      return pair(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE);
    case cudaMemcpyDeviceToHost:
      return pair(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST);
    case cudaMemcpyDeviceToDevice:
      return pair(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
    case cudaMemcpyDefault:
      return pair(CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED);
    default:
      return false;
  }
}

cudaError_t CopyBlock(bool per_thread, cudaPos src_at, cudaPitchedPtr src, cudaPos dst_at,
                      cudaPitchedPtr dst, cudaExtent extent, cudaMemcpyKind kind,
                      cudaStream_t stream, bool async) {
  ALLRANKS_ENTER();
  CUDA_MEMCPY3D copy{};
  if (!TypesOf(kind, &copy.srcMemoryType, &copy.dstMemoryType)) {
    return Note(cudaErrorInvalidMemcpyDirection);
  }
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  if (src.pitch > kMaxPitch || dst.pitch > kMaxPitch || extent.width + src_at.x > src.pitch ||
      extent.width + dst_at.x > dst.pitch) {
    return Note(cudaErrorInvalidPitchValue);
  }
  copy.srcHost = src.ptr;
  copy.srcDevice = Ptr(src.ptr);
  copy.srcPitch = src.pitch;
  copy.srcHeight = src.ysize;
  copy.srcXInBytes = src_at.x;
  copy.srcY = src_at.y;
  copy.srcZ = src_at.z;
  copy.dstHost = dst.ptr;
  copy.dstDevice = Ptr(dst.ptr);
  copy.dstPitch = dst.pitch;
  copy.dstHeight = dst.ysize;
  copy.dstXInBytes = dst_at.x;
  copy.dstY = dst_at.y;
  copy.dstZ = dst_at.z;
  copy.WidthInBytes = extent.width;
  copy.Height = extent.height;
  copy.Depth = extent.depth;
  if (per_thread && stream == nullptr) stream = cudaStreamPerThread;
  return Note(async || per_thread ? cuMemcpy3DAsync(&copy, stream) : cuMemcpy3D(&copy));
}

cudaError_t Copy2D(bool per_thread, void* dst, std::size_t dst_pitch, const void* src,
                   std::size_t src_pitch, std::size_t width, std::size_t height,
                   cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  const cudaPitchedPtr from{const_cast<void*>(src), src_pitch, width, height};
  const cudaPitchedPtr to{dst, dst_pitch, width, height};
  return CopyBlock(per_thread, {}, from, {}, to, {width, height, 1}, kind, stream, async);
}

// For cudaMemcpy3DParms and cudaMemcpy3DPeerParms.
template <class T>
cudaError_t Copy3D(bool per_thread, const T* copy, cudaMemcpyKind kind, cudaStream_t stream,
                   bool async) {
  if (copy == nullptr || (copy->srcArray != nullptr) == (copy->srcPtr.ptr != nullptr) ||
      (copy->dstArray != nullptr) == (copy->dstPtr.ptr != nullptr)) {
    return Note(cudaErrorInvalidValue);
  }
  if (copy->srcArray != nullptr || copy->dstArray != nullptr) return Note(cudaErrorNotSupported);
  return CopyBlock(per_thread, copy->srcPos, copy->srcPtr, copy->dstPos, copy->dstPtr, copy->extent,
                   kind, stream, async);
}

cudaError_t CheckDevices(int first, int second) {
  ALLRANKS_ENTER();
  int count = 0;
  const CUresult result = cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS) return Note(result);
  const bool valid = first >= 0 && first < count && second >= 0 && second < count;
  return valid ? cudaSuccess : Note(cudaErrorInvalidDevice);
}

cudaError_t Copy3DPeer(bool per_thread, const cudaMemcpy3DPeerParms* copy, cudaStream_t stream,
                       bool async) {
  if (copy == nullptr) return Note(cudaErrorInvalidValue);
  const cudaError_t error = CheckDevices(copy->srcDevice, copy->dstDevice);
  if (error != cudaSuccess) return error;
  return Copy3D(per_thread, copy, cudaMemcpyDefault, stream, async);
}

}  // namespace

// --- one dimension -----------------------------------------------------------------------------

cudaError_t cudaMemcpy(void* dst, const void* src, size_t size, cudaMemcpyKind kind) {
  return Copy(false, dst, src, size, kind, nullptr, false);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpy_ptds,
                (void* dst, const void* src, size_t size, cudaMemcpyKind kind)) {
  return WaitPerThread(Copy(true, dst, src, size, kind, nullptr, true));
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return Copy(false, dst, src, size, kind, stream, true);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpyAsync_ptsz,
                (void* dst, const void* src, size_t size, cudaMemcpyKind kind,
                 cudaStream_t stream)) {
  return Copy(true, dst, src, size, kind, stream, true);
}

// With one address space the devices say nothing that the addresses do not.
cudaError_t cudaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device,
                           size_t size) {
  const cudaError_t error = CheckDevices(dst_device, src_device);
  if (error != cudaSuccess) return error;
  return Copy(false, dst, src, size, cudaMemcpyDeviceToDevice, nullptr, false);
}
cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device,
                                size_t size, cudaStream_t stream) {
  const cudaError_t error = CheckDevices(dst_device, src_device);
  if (error != cudaSuccess) return error;
  return Copy(false, dst, src, size, cudaMemcpyDeviceToDevice, stream, true);
}

// --- two dimensions ----------------------------------------------------------------------------

cudaError_t cudaMemcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return Copy2D(false, dst, dst_pitch, src, src_pitch, width, height, kind, nullptr, false);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpy2D_ptds,
                (void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                 size_t height, cudaMemcpyKind kind)) {
  return WaitPerThread(
      Copy2D(true, dst, dst_pitch, src, src_pitch, width, height, kind, nullptr, true));
}
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return Copy2D(false, dst, dst_pitch, src, src_pitch, width, height, kind, stream, true);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpy2DAsync_ptsz,
                (void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                 size_t height, cudaMemcpyKind kind, cudaStream_t stream)) {
  return Copy2D(true, dst, dst_pitch, src, src_pitch, width, height, kind, stream, true);
}

// --- three dimensions --------------------------------------------------------------------------

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy) {
  return Copy3D(false, copy, copy != nullptr ? copy->kind : cudaMemcpyDefault, nullptr, false);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpy3D_ptds, (const cudaMemcpy3DParms* copy)) {
  return WaitPerThread(
      Copy3D(true, copy, copy != nullptr ? copy->kind : cudaMemcpyDefault, nullptr, true));
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
  return Copy3D(false, copy, copy != nullptr ? copy->kind : cudaMemcpyDefault, stream, true);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpy3DAsync_ptsz,
                (const cudaMemcpy3DParms* copy, cudaStream_t stream)) {
  return Copy3D(true, copy, copy != nullptr ? copy->kind : cudaMemcpyDefault, stream, true);
}
cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* copy) {
  return Copy3DPeer(false, copy, nullptr, false);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpy3DPeer_ptds, (const cudaMemcpy3DPeerParms* copy)) {
  return WaitPerThread(Copy3DPeer(true, copy, nullptr, true));
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream) {
  return Copy3DPeer(false, copy, stream, true);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpy3DPeerAsync_ptsz,
                (const cudaMemcpy3DPeerParms* copy, cudaStream_t stream)) {
  return Copy3DPeer(true, copy, stream, true);
}
