// What entry points that copy share: the one-dimensional copy, and device variables as its ends.
#pragma once

#include <cstddef>

#include "shim/cudart/runtime.h"

namespace allranks::shim {

// `per_thread`: stream 0 is the thread's own, and the copy is asynchronous.
cudaError_t Copy(bool per_thread, void* dst, const void* src, std::size_t size, cudaMemcpyKind kind,
                 cudaStream_t stream, bool async);

// Calls act(char*) with the place `offset` behind the start of a device variable, in which `size`
// bytes must fit.
template <class F>
cudaError_t WithSymbol(const void* symbol, std::size_t size, std::size_t offset, F act) {
  ALLRANKS_ENTER();
  CUdeviceptr address = 0;
  std::size_t whole = 0;
  const cudaError_t error = FindVariable(symbol, &address, &whole);
  if (error != cudaSuccess) return Note(error);
  if (offset > whole || size > whole - offset) return Note(cudaErrorInvalidValue);
  return act(reinterpret_cast<char*>(address + offset));
}

}  // namespace allranks::shim
