// Memory of the runtime API.
#include <string.h>

#include "shim/cudart/runtime.h"

using namespace allranks::shim;

cudaError_t cudaMalloc(void** pointer, size_t size) {
  ALLRANKS_ENTER();
  if (pointer == nullptr) return Note(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (size == 0) return cudaSuccess;
  CUdeviceptr address = 0;
  const CUresult result = cuMemAlloc(&address, size);
  *pointer = reinterpret_cast<void*>(address);
  return Note(result);
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  ALLRANKS_ENTER();
  if (pointer == nullptr || pitch == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const CUresult result = cuMemAllocPitch(&address, pitch, width, height, 4);
  *pointer = reinterpret_cast<void*>(address);
  return Note(result);
}

cudaError_t cudaFree(void* pointer) {
  ALLRANKS_ENTER();  // cudaFree(0) is how programs initialise
  return Note(cuMemFree(Ptr(pointer)));
}

// The stream-ordered allocator without its pools: memory is there at once, and is freed when the
// work before it has been done.
namespace {
cudaError_t MallocAsync(void** pointer, size_t size) { return cudaMalloc(pointer, size); }
cudaError_t FreeAsync(void* pointer, cudaStream_t stream) {
  ALLRANKS_ENTER();
  const CUresult result = cuStreamSynchronize(stream);
  return Note(result != CUDA_SUCCESS ? result : cuMemFree(Ptr(pointer)));
}
}  // namespace
cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t) {
  return MallocAsync(pointer, size);
}
ALLRANKS_EXPORT cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t size, cudaStream_t) {
  return MallocAsync(pointer, size);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) { return FreeAsync(pointer, stream); }
ALLRANKS_EXPORT cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
  return FreeAsync(pointer, stream == nullptr ? cudaStreamPerThread : stream);
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned flags) {
  ALLRANKS_ENTER();
  return Note(cuMemHostAlloc(pointer, size, flags));
}

cudaError_t cudaMallocHost(void** pointer, size_t size) { return cudaHostAlloc(pointer, size, 0); }

cudaError_t cudaFreeHost(void* pointer) {
  ALLRANKS_ENTER();
  return pointer == nullptr ? cudaSuccess : Note(cuMemFreeHost(pointer));
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  ALLRANKS_ENTER();
  if (device == nullptr) return Note(cudaErrorInvalidValue);
  CUdeviceptr address = 0;
  const CUresult result = cuMemHostGetDevicePointer(&address, host, flags);
  *device = reinterpret_cast<void*>(address);
  return Note(result);
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  ALLRANKS_ENTER();
  return Note(cuMemHostGetFlags(flags, host));
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  ALLRANKS_ENTER();
  return Note(cuMemGetInfo(free, total));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  ALLRANKS_ENTER();
  if (attributes == nullptr) return Note(cudaErrorInvalidValue);
  memset(attributes, 0, sizeof *attributes);
  attributes->device = -2;
  CUmemorytype type = static_cast<CUmemorytype>(0);
  const CUresult result =
      cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Ptr(pointer));
  if (result == CUDA_ERROR_INVALID_VALUE) {  // the program's own memory: an answer, not an error
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  if (result != CUDA_SUCCESS) return Note(result);
  int device = 0;
  cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, Ptr(pointer));
  attributes->device = device < 0 ? CurrentDevice() : device;
  attributes->devicePointer = const_cast<void*>(pointer);
  if (type == CU_MEMORYTYPE_DEVICE) {
    attributes->type = cudaMemoryTypeDevice;
  } else {
    attributes->type = cudaMemoryTypeHost;
    attributes->hostPointer = const_cast<void*>(pointer);
  }
  return cudaSuccess;
}

// --- sharing -----------------------------------------------------------------------------------

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  ALLRANKS_ENTER();
  return Note(cuIpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), Ptr(pointer)));
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  ALLRANKS_ENTER();
  if (pointer == nullptr) return Note(cudaErrorInvalidValue);
  CUipcMemHandle driver;
  memcpy(&driver, &handle, sizeof driver);
  CUdeviceptr address = 0;
  const CUresult result = cuIpcOpenMemHandle(&address, driver, flags);
  *pointer = reinterpret_cast<void*>(address);
  return Note(result);
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  ALLRANKS_ENTER();
  return Note(cuIpcCloseMemHandle(Ptr(pointer)));
}

// --- copies ------------------------------------------------------------------------------------

namespace {

// Addresses tell where memory is; a kind that contradicts them is refused by the driver's call.
cudaError_t Copy(bool per_thread, void* dst, const void* src, std::size_t size, cudaMemcpyKind kind,
                 cudaStream_t stream, bool async) {
  ALLRANKS_ENTER();
  if (per_thread && stream == nullptr) stream = cudaStreamPerThread;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      if (async) return Note(cuMemcpyHtoDAsync(Ptr(dst), src, size, stream));
      return Note(per_thread ? cuMemcpyHtoDAsync(Ptr(dst), src, size, stream)
                             : cuMemcpyHtoD(Ptr(dst), src, size));
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

// A synchronous copy of the per-thread flavour is an asynchronous one and a wait.
cudaError_t CopyPerThread(void* dst, const void* src, std::size_t size, cudaMemcpyKind kind) {
  const cudaError_t error = Copy(true, dst, src, size, kind, nullptr, true);
  return error != cudaSuccess ? error : Note(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

cudaError_t Copy2D(bool per_thread, void* dst, std::size_t dst_pitch, const void* src,
                   std::size_t src_pitch, std::size_t width, std::size_t height,
                   cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  if (width > dst_pitch || width > src_pitch) return Note(cudaErrorInvalidPitchValue);
  if (width == dst_pitch && width == src_pitch) {
    return Copy(per_thread, dst, src, width * height, kind, stream, async);
  }
  for (std::size_t row = 0; row < height; ++row) {
    const cudaError_t error =
        Copy(per_thread, static_cast<char*>(dst) + row * dst_pitch,
             static_cast<const char*>(src) + row * src_pitch, width, kind, stream, async);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy(void* dst, const void* src, size_t size, cudaMemcpyKind kind) {
  return Copy(false, dst, src, size, kind, nullptr, false);
}
ALLRANKS_EXPORT cudaError_t cudaMemcpy_ptds(void* dst, const void* src, size_t size,
                                            cudaMemcpyKind kind) {
  return CopyPerThread(dst, src, size, kind);
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return Copy(false, dst, src, size, kind, stream, true);
}
ALLRANKS_EXPORT cudaError_t cudaMemcpyAsync_ptsz(void* dst, const void* src, size_t size,
                                                 cudaMemcpyKind kind, cudaStream_t stream) {
  return Copy(true, dst, src, size, kind, stream, true);
}

cudaError_t cudaMemcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return Copy2D(false, dst, dst_pitch, src, src_pitch, width, height, kind, nullptr, false);
}
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return Copy2D(false, dst, dst_pitch, src, src_pitch, width, height, kind, stream, true);
}
ALLRANKS_EXPORT cudaError_t cudaMemcpy2DAsync_ptsz(void* dst, size_t dst_pitch, const void* src,
                                                   size_t src_pitch, size_t width, size_t height,
                                                   cudaMemcpyKind kind, cudaStream_t stream) {
  return Copy2D(true, dst, dst_pitch, src, src_pitch, width, height, kind, stream, true);
}

// With one address space the devices say nothing that the addresses do not.
cudaError_t cudaMemcpyPeer(void* dst, int, const void* src, int, size_t size) {
  return Copy(false, dst, src, size, cudaMemcpyDeviceToDevice, nullptr, false);
}
cudaError_t cudaMemcpyPeerAsync(void* dst, int, const void* src, int, size_t size,
                                cudaStream_t stream) {
  return Copy(false, dst, src, size, cudaMemcpyDeviceToDevice, stream, true);
}

namespace {

cudaError_t ToSymbol(bool per_thread, const void* symbol, const void* src, std::size_t size,
                     std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  ALLRANKS_ENTER();
  CUdeviceptr address = 0;
  std::size_t whole = 0;
  const cudaError_t error = FindVariable(symbol, &address, &whole);
  if (error != cudaSuccess) return Note(error);
  if (offset > whole || size > whole - offset) return Note(cudaErrorInvalidValue);
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
      kind != cudaMemcpyDefault) {
    return Note(cudaErrorInvalidMemcpyDirection);
  }
  return Copy(per_thread, reinterpret_cast<void*>(address + offset), src, size, kind, stream,
              async);
}

cudaError_t FromSymbol(bool per_thread, void* dst, const void* symbol, std::size_t size,
                       std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  ALLRANKS_ENTER();
  CUdeviceptr address = 0;
  std::size_t whole = 0;
  const cudaError_t error = FindVariable(symbol, &address, &whole);
  if (error != cudaSuccess) return Note(error);
  if (offset > whole || size > whole - offset) return Note(cudaErrorInvalidValue);
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
      kind != cudaMemcpyDefault) {
    return Note(cudaErrorInvalidMemcpyDirection);
  }
  return Copy(per_thread, dst, reinterpret_cast<const void*>(address + offset), size, kind, stream,
              async);
}

}  // namespace

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* src, size_t size, size_t offset,
                               cudaMemcpyKind kind) {
  return ToSymbol(false, symbol, src, size, offset, kind, nullptr, false);
}
cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t size, size_t offset,
                                 cudaMemcpyKind kind) {
  return FromSymbol(false, dst, symbol, size, offset, kind, nullptr, false);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t size, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return ToSymbol(false, symbol, src, size, offset, kind, stream, true);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t size, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return FromSymbol(false, dst, symbol, size, offset, kind, stream, true);
}
ALLRANKS_EXPORT cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* src,
                                                         size_t size, size_t offset,
                                                         cudaMemcpyKind kind, cudaStream_t stream) {
  return ToSymbol(true, symbol, src, size, offset, kind, stream, true);
}
ALLRANKS_EXPORT cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* dst, const void* symbol,
                                                           size_t size, size_t offset,
                                                           cudaMemcpyKind kind,
                                                           cudaStream_t stream) {
  return FromSymbol(true, dst, symbol, size, offset, kind, stream, true);
}
ALLRANKS_EXPORT cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* src,
                                                    size_t size, size_t offset,
                                                    cudaMemcpyKind kind) {
  const cudaError_t error = ToSymbol(true, symbol, src, size, offset, kind, nullptr, true);
  return error != cudaSuccess ? error : Note(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}
ALLRANKS_EXPORT cudaError_t cudaMemcpyFromSymbol_ptds(void* dst, const void* symbol, size_t size,
                                                      size_t offset, cudaMemcpyKind kind) {
  const cudaError_t error = FromSymbol(true, dst, symbol, size, offset, kind, nullptr, true);
  return error != cudaSuccess ? error : Note(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

// --- sets --------------------------------------------------------------------------------------

cudaError_t cudaMemset(void* pointer, int value, size_t size) {
  ALLRANKS_ENTER();
  return Note(cuMemsetD8(Ptr(pointer), static_cast<unsigned char>(value), size));
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t size, cudaStream_t stream) {
  ALLRANKS_ENTER();
  return Note(cuMemsetD8Async(Ptr(pointer), static_cast<unsigned char>(value), size, stream));
}
ALLRANKS_EXPORT cudaError_t cudaMemset_ptds(void* pointer, int value, size_t size) {
  return cudaMemsetAsync(pointer, value, size, cudaStreamPerThread);
}
ALLRANKS_EXPORT cudaError_t cudaMemsetAsync_ptsz(void* pointer, int value, size_t size,
                                                 cudaStream_t stream) {
  return cudaMemsetAsync(pointer, value, size, stream == nullptr ? cudaStreamPerThread : stream);
}
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  ALLRANKS_ENTER();
  return Note(cuMemsetD2D8(Ptr(pointer), pitch, static_cast<unsigned char>(value), width, height));
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  ALLRANKS_ENTER();
  return Note(cuMemsetD2D8Async(Ptr(pointer), pitch, static_cast<unsigned char>(value), width,
                                height, stream));
}
