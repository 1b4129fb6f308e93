// Sets of the runtime API, of one to three dimensions.
#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

cudaStream_t Own(cudaStream_t stream) { return stream == nullptr ? cudaStreamPerThread : stream; }

cudaError_t Set2D(cudaPitchedPtr at, int value, std::size_t width, std::size_t rows,
                  cudaStream_t stream, bool async) {
  ALLRANKS_ENTER();
  if (width == 0 || rows == 0) return cudaSuccess;
  const auto byte = static_cast<unsigned char>(value);
  return Note(async ? cuMemsetD2D8Async(Ptr(at.ptr), at.pitch, byte, width, rows, stream)
                    : cuMemsetD2D8(Ptr(at.ptr), at.pitch, byte, width, rows));
}

// Planes that follow each other without a gap are one.
cudaError_t Set3D(cudaPitchedPtr at, int value, cudaExtent extent, cudaStream_t stream,
                  bool async) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  if (extent.width > at.pitch || (extent.height > at.ysize && extent.depth > 1)) {
    return Note(cudaErrorInvalidValue);
  }
  if (extent.height == at.ysize || extent.depth == 1) {
    return Set2D(at, value, extent.width, extent.height * extent.depth, stream, async);
  }
  for (std::size_t plane = 0; plane < extent.depth; ++plane) {
    const cudaError_t error = Set2D(at, value, extent.width, extent.height, stream, async);
    if (error != cudaSuccess) return error;
    at.ptr = static_cast<char*>(at.ptr) + at.pitch * at.ysize;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemset(void* pointer, int value, size_t size) {
  ALLRANKS_ENTER();
  return Note(cuMemsetD8(Ptr(pointer), static_cast<unsigned char>(value), size));
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t size, cudaStream_t stream) {
  ALLRANKS_ENTER();
  return Note(cuMemsetD8Async(Ptr(pointer), static_cast<unsigned char>(value), size, stream));
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemset_ptds, (void* pointer, int value, size_t size)) {
  return cudaMemsetAsync(pointer, value, size, cudaStreamPerThread);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemsetAsync_ptsz,
                (void* pointer, int value, size_t size, cudaStream_t stream)) {
  return cudaMemsetAsync(pointer, value, size, Own(stream));
}

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return Set2D({pointer, pitch, width, height}, value, width, height, nullptr, false);
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return Set2D({pointer, pitch, width, height}, value, width, height, stream, true);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemset2D_ptds,
                (void* pointer, size_t pitch, int value, size_t width, size_t height)) {
  return cudaMemset2DAsync(pointer, pitch, value, width, height, cudaStreamPerThread);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemset2DAsync_ptsz,
                (void* pointer, size_t pitch, int value, size_t width, size_t height,
                 cudaStream_t stream)) {
  return cudaMemset2DAsync(pointer, pitch, value, width, height, Own(stream));
}

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent) {
  return Set3D(pointer, value, extent, nullptr, false);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return Set3D(pointer, value, extent, stream, true);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemset3D_ptds,
                (cudaPitchedPtr pointer, int value, cudaExtent extent)) {
  return Set3D(pointer, value, extent, cudaStreamPerThread, true);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemset3DAsync_ptsz,
                (cudaPitchedPtr pointer, int value, cudaExtent extent, cudaStream_t stream)) {
  return Set3D(pointer, value, extent, Own(stream), true);
}
