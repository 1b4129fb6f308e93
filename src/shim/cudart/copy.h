// The one-dimensional copy of the runtime API, for the entry points of copy.cpp and symbol.cpp.
#pragma once

#include <cstddef>

#include "shim/cudart/runtime.h"

namespace allranks::shim {

// `per_thread`: stream 0 is the thread's own, and the copy is asynchronous.
cudaError_t Copy(bool per_thread, void* dst, const void* src, std::size_t size, cudaMemcpyKind kind,
                 cudaStream_t stream, bool async);

}  // namespace allranks::shim
