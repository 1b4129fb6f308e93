// Variables of the device by their host shadows: copies to and from them.
#include "shim/cudart/copy.h"
#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

cudaError_t ToSymbol(bool per_thread, const void* symbol, const void* src, std::size_t size,
                     std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  return WithSymbol(symbol, size, offset, [&](char* place) {
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
        kind != cudaMemcpyDefault) {
      return Note(cudaErrorInvalidMemcpyDirection);
    }
    return Copy(per_thread, place, src, size, kind, stream, async);
  });
}

cudaError_t FromSymbol(bool per_thread, void* dst, const void* symbol, std::size_t size,
                       std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  return WithSymbol(symbol, size, offset, [&](const char* place) {
    if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
        kind != cudaMemcpyDefault) {
      return Note(cudaErrorInvalidMemcpyDirection);
    }
    return Copy(per_thread, dst, place, size, kind, stream, async);
  });
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
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpyToSymbolAsync_ptsz,
                (const void* symbol, const void* src, size_t size, size_t offset,
                 cudaMemcpyKind kind, cudaStream_t stream)) {
  return ToSymbol(true, symbol, src, size, offset, kind, stream, true);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpyFromSymbolAsync_ptsz,
                (void* dst, const void* symbol, size_t size, size_t offset, cudaMemcpyKind kind,
                 cudaStream_t stream)) {
  return FromSymbol(true, dst, symbol, size, offset, kind, stream, true);
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpyToSymbol_ptds,
                (const void* symbol, const void* src, size_t size, size_t offset,
                 cudaMemcpyKind kind)) {
  const cudaError_t error = ToSymbol(true, symbol, src, size, offset, kind, nullptr, true);
  return error != cudaSuccess ? error : Note(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}
ALLRANKS_SYMBOL(cudaError_t, cudaMemcpyFromSymbol_ptds,
                (void* dst, const void* symbol, size_t size, size_t offset, cudaMemcpyKind kind)) {
  const cudaError_t error = FromSymbol(true, dst, symbol, size, offset, kind, nullptr, true);
  return error != cudaSuccess ? error : Note(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}
