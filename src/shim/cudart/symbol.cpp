// Variables of the device by their host shadows: copies to and from them.
#include "shim/cudart/copy.h"
#include "shim/cudart/runtime.h"

using namespace allranks::shim;

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
